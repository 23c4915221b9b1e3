"""What the program says of itself, for scripts that walk over all of it."""

import json


def prior_names(schema):
    """Every prior, in the registry's order, by the text that bamtrain --print-schema writes."""
    model = json.loads(schema)["properties"]["model"]["properties"]
    return [p["properties"]["name"]["const"]
            for p in model["attention"]["properties"]["prior"]["oneOf"] if p["type"] == "object"]
