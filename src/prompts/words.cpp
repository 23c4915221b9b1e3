#include "prompts/words.h"

#include <sstream>

namespace bamtrain {

namespace {

constexpr const char* kAdjectives =
    "able absent active acute aged agile alert alive amber ample ancient angry annual anxious "
    "apt arctic arid ashen atomic aware awkward azure bald bare basic bearded bent better big "
    "bitter bland blank bleak blind blond blue blunt bold bony boring brave brief bright "
    "brisk brittle broad bronze brown bulky bumpy burly busy calm candid careful careless "
    "casual cautious central certain charming cheap cheerful chief chilly choosy chubby civic "
    "civil classic clean clear clever cloudy clumsy coarse cold colossal common compact "
    "complex concise content convex cool copper coral cosmic costly cozy crafty cranky creamy "
    "creative crimson crisp crooked crucial crude cruel curious curly current curved custom "
    "cute daily damp daring dark dear decent deep delicate dense devoted different difficult "
    "diligent dim direct distant dizzy double drab dreamy driven droll drowsy dry dual dull "
    "dusty dutiful eager early earnest eastern easy elastic elder elegant eloquent empty "
    "endless enormous entire equal eternal ethical even evident exact excellent exotic expert "
    "faded faint fair faithful famous fancy fast fatal fearless feeble fertile festive few "
    "fierce final fine firm fit flat flexible floral fluffy fluid fond foolish foreign formal "
    "fortunate fragile frail frank free frequent fresh friendly frosty frozen frugal full "
    "funny furry fuzzy gallant gaudy generous gentle genuine giant gifted glad glassy gloomy "
    "glossy golden good graceful grand grateful grave greasy great greedy grim gritty grumpy "
    "gusty handy happy hardy harsh hasty healthy hearty heavy helpful hidden hoarse hollow "
    "holy honest hopeful horrid hot huge humble humid hungry icy ideal idle immense impartial "
    "ivory jagged jealous jolly jovial joyful juicy junior keen kind kindly knotty known "
    "large last late lavish lawful lazy lean legal lethal lively local lofty lone lonely "
    "loose loud lovely loyal lucid lucky lunar lush magic main major maroon marvelous massive "
    "mature meager mellow merry messy mighty mild minor misty mobile modern modest moist "
    "monthly moody moral mossy muddy murky musical mute mutual mystic naive narrow nasty "
    "native natural naval near neat needy nervous neutral new nice nimble noble noisy normal "
    "northern novel numb numerous obedient oblong odd oily old olive open orange orderly "
    "ordinary organic ornate oval pale patient peaceful perfect petite pink placid plain "
    "playful pleasant plucky plump poetic polar polished polite poor popular portable "
    "practical precious precise pretty previous pricey primary prime private prompt proper "
    "proud prudent public puffy pure purple quaint quick quiet quirky radiant ragged rapid "
    "rare raspy raw ready real recent reckless regal regular remote rich rigid ripe robust "
    "rocky romantic rosy rotten rough round royal rude rural rustic rusty sad safe saline "
    "salty sandy sane scarce scarlet scenic secret secure selfish senior sensible serene "
    "serious severe shabby shadowy shaggy shallow sharp shiny short shrill shy silent silky "
    "silly simple sincere single skilled sleek sleepy slender slick slight slim slippery slow "
    "smart smoky smooth snug sober social soft solar solemn solid somber sore sour southern "
    "spare sparse spicy spiral splendid spotless square stable stale stark steady steep "
    "sterile sticky stiff still stormy stout straight strange strict strong stubborn sturdy "
    "subtle sudden sunny superb sweet swift tacit tall tame tan tangy tart tasty tawny tender "
    "tense tepid terse thick thin thirsty thorough tidy tight timely timid tiny tired total "
    "tough tragic tranquil tropical true trusty turbid twin ugly unique united upbeat upper "
    "urban urgent useful usual utter vacant vague valid valuable vast velvet verbal vibrant "
    "violet viral virtual visible vital vivid vocal warm wary watery wavy weak wealthy weary "
    "weekly weird western wet whole wicked wide wild windy wintry wise witty wooden woolly "
    "worthy yearly yellow young youthful zany zealous";

constexpr const char* kNouns =
    "abbey accent acorn acre actor adult adventure advice agency agent airport alarm album "
    "alley almond alphabet altar anchor angle animal ankle answer antler anvil apple apron "
    "arch arena armor army arrow artist atlas attic aunt author autumn avenue award axis "
    "bacon badge badger bag baker balcony ball balloon bamboo banana band banjo bank banner "
    "barn barrel basin basket bat bath battery beach bead beak beam bean bear beard beaver "
    "bed bee beetle bell belt bench berry bicycle bike birch bird biscuit blade blanket blaze "
    "blossom board boat body bolt bone bonnet book boot border bottle boulder bowl box boy "
    "bracelet brain branch brass bread breeze brick bride bridge broom brother brush bucket "
    "buckle bud buffalo bug builder bull bunker bus bush butter butterfly button cabbage "
    "cabin cabinet cable cactus cage cake calendar calf camel camera camp canal candle candy "
    "cannon canoe canvas canyon cap captain car caravan card cargo carpenter carpet carrot "
    "cart castle cat cattle cave cedar ceiling cellar cello cement cereal chain chair chalk "
    "chapel chapter cheek cheese chef cherry chest chicken child chimney chin chocolate "
    "church cider cinema circle circus city clam clay cliff clock cloth cloud clover clown "
    "club coach coal coast coat cobra cobweb coconut coffee coffin coin collar college colony "
    "column comb comet compass concert cook cookie cord cork corn corner cottage cotton couch "
    "cougar country courage court cousin cow crab cradle crane crate crater crayon cream "
    "creek crew cricket crow crowd crown crystal cub cube cucumber cup cupboard curtain "
    "cushion customer cycle dad daisy dam dancer dawn deer dentist desert desk dessert detail "
    "device dew diamond diary dice dinner dirt dish dock doctor dog doll dolphin donkey door "
    "dove dragon drama drawer dream dress driver drum duck duke dust eagle ear earth easel "
    "echo edge editor eel effort egg elbow elephant elevator elf elk elm emerald emperor "
    "empire engine engineer envelope estate evening event eye fabric face factory fairy "
    "falcon family fan farm farmer father faucet feast feather fence fern ferry festival "
    "fiddle field fig finger fire fireplace fish flag flame flannel flask fleet flock flood "
    "floor flour flower flute fly foam fog folder food foot forest fork fort fountain fox "
    "frame freezer friend frog front fruit fuel furnace galaxy gallery game garage garden "
    "garlic garment gate gear geese gem ghost giraffe girl glacier glass globe glove glue "
    "goat goddess gold goose gorilla gown grain grandmother grape grass gravel gravy grease "
    "griffin grocer ground group grove guard guest guide guitar gulf gull gum guy gym hail "
    "hair hall hammer hammock hand handle harbor hare harp harvest hat hawk hay hazel head "
    "heart hearth heat hedge heel height helmet hen herb herd hero heron highway hill hinge "
    "hip history hobby hockey hole holiday home honey hood hoof hook horn hornet horse hose "
    "hospital host hotel hour house hut ice igloo inch infant ink inn insect iris iron island "
    "jacket jaguar jail jam jar jaw jeans jelly jewel joke journal journey judge jug juice "
    "jungle jury kangaroo kettle key keyboard king kitchen kite kitten knee knife knight knot "
    "label lace ladder lady lagoon lake lamb lamp land lantern laptop lark laundry lava law "
    "lawn lawyer leader leaf leather legend lemon lens leopard lesson letter lettuce level "
    "library lid lightning lily limb lime linen lion lip liquid list lizard loaf lobster lock "
    "locket locust lodge log loom lotus lumber lunch lung lute lynx machine magnet maid mail "
    "mammal mango mantle map maple marble market marsh mask mast master mat match mayor "
    "meadow meal measure meat medal melody melon member memory menu merchant metal meteor "
    "mice middle milk mill miner mint mirror mist mitten model mole moment monarch monkey "
    "monster month moon morning mosaic moss moth mother motion motor mountain mouse mouth "
    "movie mud muffin mug mule muscle museum mushroom music mustard nail name napkin nation "
    "nature neck necklace needle neighbor nephew nest net nickel niece night north nose note "
    "notebook nurse nut oak oar oasis oat ocean octopus office officer oil onion opera orbit "
    "orchard orchid organ ostrich otter oven owl owner ox oyster package paddle page pail "
    "paint painter pair palace palm pan pancake panda panther paper parade parcel parent park "
    "parrot party passenger pasta paste path patio pea peach peacock peak peanut pear pearl "
    "pebble pelican pen pencil penguin pepper petal phone photo piano pickle picnic pie pig "
    "pigeon pillow pilot pin pine pipe pirate pizza place plane planet plant plate platform "
    "player plot plow plum pocket poem poet pole pond pony pool porch port portrait post pot "
    "potato pottery pouch powder prairie present priest prince princess print prison prize "
    "prose pudding puddle pump pumpkin puppet puppy purse puzzle pyramid quail quarry queen "
    "quest quill quilt quiver rabbit raccoon race radio radish raft rag rail railroad rain "
    "rainbow raisin rake ram ranch raven razor reason recipe record reef region reindeer "
    "relic report reward rhino rhythm ribbon rice riddle ride ring river road robe robin "
    "robot rock rocket rod roof room rooster root rope rose route rowboat ruby rudder rug "
    "ruler sack saddle sail sailor salad salmon salt sand sandal sandwich satin sauce saucer "
    "scale scarecrow scarf scene scent school science scissors scooter scorpion scout scroll "
    "sculptor sea seal season seat seed shade shark shawl shed sheep sheet shelf shell "
    "shelter shepherd sheriff shield ship shirt shoe shop shore shoulder shovel shower shrimp "
    "shrine shrub sidewalk signal silk silver singer sink sister skate skeleton ski skirt "
    "skull sky sled sleet sleeve slipper slope sloth snail snake snow soap soccer sock soda "
    "sofa soil soldier son song soup south space spade spark sparrow spear speech spider "
    "spike spinach spirit sponge spoon sport spot spray spring spy squash squid squirrel "
    "staff stage stair stamp star station statue steam steel stem step stew stick stocking "
    "stomach stone stool store storm stove stranger straw stream street string student studio "
    "submarine sugar suit summer summit sun sunset surgeon swamp swan sweater swing sword "
    "syrup table tail tailor talent tank tape target taxi tea teacher team telescope temple "
    "tent territory theater thief thimble thistle thorn thread throat throne thumb thunder "
    "ticket tide tiger timber tin title toad toast toe tomato tongue tool tooth torch tornado "
    "tortoise towel tower town toy tractor trader trail train tray treasure treat tree trench "
    "triangle tribe trick trolley trombone trophy trouble trousers trout truck trumpet trunk "
    "tub tube tulip tuna tunnel turkey turnip turtle tutor twig typhoon umbrella uncle "
    "unicorn uniform union valley van vase vegetable veil vein vessel vest veteran victory "
    "village vine vinegar violin visitor voice volcano vote voyage vulture wagon waist waiter "
    "wall wallet walnut walrus warehouse warrior wasp watch water waterfall wave wax weaver "
    "wedding weed week whale wharf wheat wheel whip whisker whistle widow wife wig willow "
    "wind window wine wing winner winter wire wizard wolf woman wood wool word worker world "
    "worm wreath wren wrench wrist writer yacht yard yarn year yeast yogurt zebra zipper zone "
    "zoo";

std::vector<std::string> split(const char* text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

}  // namespace

const std::vector<std::string>& adjectives() {
  static const std::vector<std::string> all = split(kAdjectives);
  return all;
}

const std::vector<std::string>& nouns() {
  static const std::vector<std::string> all = split(kNouns);
  return all;
}

const std::vector<std::string>& words() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> both = adjectives();
    both.insert(both.end(), nouns().begin(), nouns().end());
    return both;
  }();
  return all;
}

}  // namespace bamtrain
