# bamtrain on Debian, for CPUs:
#
#   docker build -t bamtrain .
#   docker run --rm -v "$PWD:/work" bamtrain train run.json
#
# With the CUDA backend: an image of Debian with the CUDA toolkit as BASE, and --gpus all to run.
ARG BASE=debian:13
FROM ${BASE}
COPY . /src
RUN /src/scripts/setup.sh \
  && meson setup -Dtests=false /build /src \
  && meson install -C /build \
  && rm -rf /build /src /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 bamtrain
USER bamtrain
WORKDIR /work
ENTRYPOINT ["bamtrain"]
