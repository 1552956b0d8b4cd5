"""The registers of child-directed speech, as templates of :mod:`babyssa.language.grammar`.

``== name young old`` opens a register: its share of utterance groups at the youngest and at the oldest age
(their sum is no matter). Below it one template a line, behind its weight within the register. End marks give
the type of the utterance: ``.`` declarative, ``?`` question, ``!`` imperative, ``+`` trail off.
"""

from __future__ import annotations

from functools import cache
from itertools import accumulate
from typing import NamedTuple

REGISTERS = """
== backchannel 62 40
6 (yeah|yeah|yes|yep|uhhuh|mhm) .
4 (okay|okay|alright|right|sure|good) .
4 (oh|oh|ah|wow|ooh|uhoh|whoops|oops|ow|well) .
3 (no|no|nope) .
3 (huh|what|hm|yeah|okay|see|right|ready|no|why) ?
2 (peekaboo|boo|bye|hi|hello|careful|gently|listen|look|wait|quick|hooray|please|thanks|yummy|achoo|up) !
2 {honey} !
1 {honey} ?
1 {sg_noun.head} .
1 {noun.head} ?
1 (one|two|three|four|five|{sound}) .

== two_words 36 16
3 (good|good|big|silly|nice) {boy} .
3 all (gone|done|better|clean|wet|dry|right|finished) .
3 oh (no|dear|boy|my|yeah|good|okay|look|well) .
2 (thank you|bye bye|night night|good night|uhoh spaghettios|hi there|hello there|here goes|not yet|of course) .
2 (right|over|up|down|in|back) (there|here) .
2 come (here|back|on|in) !
2 {sg_noun.a} .
1 {pl_noun} .
1 (what|who|where) else ?
1 look {honey} !
1 (more|no more) (juice|milk|water|cheese|soup|bread|toast|cereal) ?
2 very (good|nice|funny|pretty|soft|big|hot|loud) .
1 (try|once) again .
1 say {sg_noun.head} .
1 say (please|hi|bye|thank you|night night) .
1 the {sg_animal.head} ?
1 hi {name} .
1 (what happened|guess what|you ready|who me|what now|like this|this one|that one|which one|your turn) ?
1 {noun.attr} {noun.head} .
1 (my turn|your turn|this one|that one|not now|too hot|so big|so soft|just kidding|one more|good idea) .
1 {sound} {sound} .

== labelling 12 5
9 (that is|that is|it is|this is|there is) {sg_noun.a} .
4 that is {sg_animal.a} .
3 (these|those) are {pl_noun.bare} .
2 they are {pl_noun.bare} .
2 that is (your|my|{name}'s) {sg_noun.bare} .
2 (this|that) is (not|not|really) {sg_noun.a} .
1 it is not {sg_noun.a} it is {sg_noun2.a} .
2 what is (this|that) ? / (that is|it is) {sg_noun.a} .
2 what are (these|those) ? / (those|they) are {pl_noun.bare} .
2 here {noun.is} {noun.the} .
2 here is {sg_noun.a} and here is {sg_noun2.a} .
1 that one is {sg_noun.a} too .
2 look {noun.those} {noun.is} {noun.the} .
2 that is {sg_noun.a} (is not it|is not it|right|huh) ?
1 those are {pl_noun.bare} (are not they|right|huh) ?
2 and that is {sg_person.a} .
1 the {sg_animal.head} says {sound} {sound} .
2 (what does|what does) {sg_animal.the} say ? / {sg_animal.the} says {sound} .

== presenting 7 4
4 here you go (.|{honey} .)
3 there (we|you) go .
3 there (it|he|she) is .
2 there they are .
3 where {noun.is} {noun.the} ? / there {noun.he} {noun.is} .
2 where {animal.is} {animal.the} ? / {animal.he} {animal.is} {where} .
2 here (it|he|she) (comes|is) .
2 here come {pl_noun.the} .
2 look (what I have|what I found|who is here|what happened) .
2 (I see you|I got you|I love you|I am coming|I know) {honey} .
1 there you are .
2 up you go .
2 here is {sg_noun.the} .

== attention 7 4
5 look at {noun.this} .
5 look at {noun.that} .
4 look at {noun.the} .
3 look at (that|this|those|these) .
3 see {noun.the} ?
2 see {noun.that} ?
2 look at {noun.your} .
2 do you see {noun.the} ?
1 do you hear {sg_animal.the} ?
2 can you see {noun.the} ?
2 let me see (.|{noun.your} .|{noun.that} .|it .)
2 look {S} {S.is} {A.ing} .
1 look at {H.obj} {A.ing} !
1 listen to {sg_animal.the} .
2 look how (big|tiny|funny|soft|pretty) {noun.that} {noun.is} .
1 do you see {noun.that} {where} ?

== what_questions 9 7
5 what is (that|that|this|it) ?
2 what are (those|these|they) ?
3 what {S.is} {S} doing ?
3 what are you doing (?|{honey} ?|with {noun.the} ?|{where} ?|to {animal.the} ?)
2 what {H.is} {H} {G.ing} ?
2 what {H.does} {H} (want|like|have|need|see) ?
2 what do you (want|see|have|need|say|think|hear|like|want to do) ?
2 what did {S} {G} (?|?|{ago} ?|{where} ?)
2 what {noun.is} {noun.the} (?|?|for ?|made of ?)
2 what {noun.was} {noun.the} ?
2 what color {noun.is} {noun.the} (?|?|that you like ?)
1 what color {noun.is} {noun.that} ?
2 what happened to {noun.the} ?
1 what kind of {sg_noun.head} is (that|this|it) ?
1 what else (do you see|can you find|is there|do we need|did you {G}) ?
1 what does {sg_animal.the} do ? / {sg_animal.he} {A.s} .
1 what do {pl_animal.the} do ? / {pl_animal.he} {A.s} .
1 what (should|can|could|will|would) {S} {G} ?
1 what {noun.was} {noun.the} doing {where} ?
1 what (is|was) {sg_noun.the} ?
1 what are {pl_noun.the} ?

== where_who_questions 7 7
4 where {noun.is} {noun.the} ?
3 where {noun.is} {noun.your} ?
2 where {noun.is} {noun.that} ?
2 where {H.is} {H} ?
2 where {noun.was} {noun.the} ?
2 where {noun.is} {noun.my} ?
2 where {H.is} {H} going ?
2 where {animal.does} {animal.the} (live|go|sleep|sit|sleep at night) ?
2 where did {noun.the} go ?
2 where did {S} put {noun.the} ?
2 where do {pl_noun.the} go ? / {pl_noun.he} go {where} .
1 where does {sg_noun.the} go ? / {sg_noun.he} goes {where} .
3 who is (that|this|it|there|coming|in there) ?
2 who is {A.ing} ?
2 who (wants|has|took|found|needs|likes) {noun.the} ?
2 who did {S} (see|hug|kiss|chase|tickle|help|hear|find) (?|?|{ago} ?|{where} ?)
1 who {H.does} {H} (see|want to see|like|love|want to hug|miss) ?
1 who should {S} (call|help|watch|kiss|hug) ?
1 who gave {H.obj} {noun.the} ?
1 who can {S} (see|hear|help|chase|watch) ?
1 whose {noun.head} {noun.is} {noun.those} ?
1 which {noun.head} do you (want|like|need) ?
1 which one (is|is not) {sg_noun.adj} ?
2 where is {sg_noun.the} {where} ?
1 where are {pl_noun.the} {where} ?

== how_why_questions 3 6
3 how many {pl_noun.head} (do you see|are there|do we have|does {sg_person.the} have|did you find) ?
2 how {noun.does} {noun.the} (work|go|fit in here|look|feel|get in there) ?
1 how {animal.does} {animal.the} (move|eat|sleep|talk|go) ?
1 how do you (do that|know|feel|say that|open it|spell {sg_noun.head}) ?
1 how about {noun.a} ?
1 how {H.is} {H} ?
1 how old are you ?
1 how big {noun.is} {noun.the} ?
2 why {S.is} {S} {A.ing} ?
2 why {H.is} {H} {H.adj} ?
2 why did {S} {A} ?
1 why do not you {A} ?
1 why {noun.is} {noun.the} {noun.adj} ?
1 when {H.does} {H} {A} ?
1 when (will|did|can) {S} {A} ?
1 what time (is it|do you go to bed) ?

== yes_no_do 8 8
5 do you (want|see|like|have|need) {noun} ?
3 do you want to {A} ?
3 do you want {I.obj} to {A} ?
3 do you (know|remember) what (that|this|it) is ?
2 {H.does} {H} {V} ?
2 {H.does} {H} (want|like|need|see|have) {noun} ?
3 did you {V} (?|?|{ago} ?)
2 did {S} {V} ?
2 do {pl_animal.the} {V} ?
2 does {sg_animal.the} {V} ?
2 (do not|did not) you (want|like|see) {noun} ?
2 want {noun.some} ?
2 want to {V} ?
2 you want {noun} ?
2 you want to {V} ?
1 did you have (fun|a good nap|a good time|enough) ?
1 does {sg_animal.that} {where} {A} ?
1 do {pl_animal.that} {where} {A} ?

== yes_no_can 6 7
4 can you {A} ?
2 can you say {sg_noun.head} ?
2 can {F} have {noun.the} ?
2 can {H} {A} ?
2 can you (find|show me|get me|see|give me|bring me) {noun} ?
2 could {S} {A} ?
2 would you like {noun.some} ?
2 would {H} {A} ?
2 should {S} {A} ?
2 will {S} {A} ?
1 may {I} {A} ?
2 (shall|should) {we} {A} ?
1 will you help {H.obj} {A} ?
2 (can|could|will|would) {P} {A} ?

== yes_no_be 5 7
4 {S.is} {S} {A.ing} ?
3 {noun.is} {noun.the} {noun.adj} ?
3 are you (hungry|tired|sleepy|done|finished|ready|okay|happy|all done|sad|cold|wet|thirsty) ?
2 {H.is} {H} {H.adj} ?
2 is (that|this|it) {sg_noun.a} ?
2 is (that|this|it) (good|yours|nice|fun|yummy|mine|hot|cold|heavy|broken|right|yours {honey}) ?
2 are (those|these|they) {pl_noun.bare} ?
2 {noun.is} {noun.the} {where} ?
2 {noun.was} {noun.the} (something you like|a good idea|something you wanted|{where}|{noun.adj}) ?
1 {noun.is} {noun.that} (something you like|a good idea|yours|mine|broken) ?
2 {S.was} {S} {A.ing} ?
2 {noun.is} there {noun.any} {where} ?
2 {animal.is} {animal.the} {A.ing} ?
2 {P.is} {P} {A.ing} ?
2 are you going to {V} ?
1 is that (your|my|{name}'s) {sg_noun.bare} ?

== imperatives 8 6
1 take {noun.the} off {noun2.the} .
1 pick up the (cups|clocks|books|toys|socks|blocks) .
5 {A} (!|.|.)
2 (put|leave) (it|it|that|this|them) (in here|in there|over here|on the table|in the box|back|down) (.|.|!)
2 (get|take|bring|throw|hold|try|push|turn) (it|it|that|this|them) (for me|again|over here|with me|now) (.|.|!)
4 (come|go) (here|on|back|sit down|get it|see) (.|!)
3 give me {noun} (.|!|please .)
3 put {noun.the} {where} (.|!)
2 put {noun.that} (back|down|away|here|there) (.|!)
2 (get|bring|show|hand) me {noun.the} .
2 (give|show|hand) {H.obj} {noun.the} .
2 (show|tell) me (.|what you found .|what happened .|about it .|what you want .|where it is .)
2 (wait|wait a minute|hold still|stop that|be careful|be nice|sit down|get down|stand up|hold on) (!|.|{honey} .)
2 open (it|your mouth|the door|the box|the bag) (.|!)
1 be (careful|nice|gentle|quiet|good) (with|to) {animal.the} .
1 go {A} .
1 ask {H.obj} (.|again .|to {A} .|about it .|about {noun.the} .)
1 try to {A} .
1 you {A} .
1 tell {H.obj} (a story|about {noun.the}|about it|to {A}|what happened) .
1 look at (me|him|her|us|them|{name}) .
1 give (it|them|that) to (me|him|her|them|us|{name}) .

== prohibitions 4 3
5 do not {A} (!|.)
2 do not (touch|eat|throw|drop|push|bite|pull|kick|break) {noun.that} !
2 do not do that (!|{honey} .|to {animal.the} .)
2 you (can not|should not|may not) {A} .
2 no (do not|you can not) {A} .
1 {we} do not {A} (.|.|{where} .)
1 {noun.that} {noun.is} not (for you|yours|for eating|a toy) .
1 that is (hot|too hot|dirty|not nice|not yours|yucky) {honey} .
1 do not put {noun.that} in your mouth !
1 you do not (eat|bite|throw) {pl_noun.bare} .
1 never {A} .

== let_us 4 4
5 let {we.obj} {A} (.|.|!|okay ?)
2 let us (see|go|go see|look|try it|try again|do it again|find out|look at this) .
2 let us (read|find|get|put away|look at|play with|count) {noun.the} .
1 let {we.obj} not {A} .
1 let {H.obj} {A} .
1 let {I.obj} {A} .
2 {F} {F.is} going to {A} .
1 it is time (to|for you to) {A} .
1 you and {I} (can|will) {A} .

== ongoing 8 8
6 {S} {S.is} {A.ing} .
3 {animal.the} {animal.is} {A.ing} .
2 {S} {S.is} {A.ing} and {S2} {S2.is} {A2.ing} .
2 {S} {S.is} not {A.ing} .
2 you are {A.ing} (.|.|are not you ?|huh ?)
2 {P} {P.is} {A.ing} .
2 {C} {C.is} {C.adj} .
1 {H} {H.is} going {goal} .
2 {H} {H.was} {A.ing} .
1 {H} {H.is} still {A.ing} .
2 {H} {H.likes} {A.ing} .

== states 5 6
1 {S.his} (cup|box|bottle|bag|bowl|basket|bucket) is (empty|full) .
1 is the (cup|box|bottle|bag|bowl|bucket|truck) (empty|full) ?
4 {noun.the} {noun.is} {noun.adj} .
3 {noun.that} {noun.is} {noun.adj} .
2 {noun.this} {noun.is} {noun.adj} .
3 {noun.the} {noun.is} {where} .
2 {noun.your} {noun.is} {where} .
3 {H} {H.is} {H.adj} .
2 {S} {V.s} .
2 {H} {V.s} .
2 {S} {S.has} {noun.a} .
2 you (have|need|want|like) {noun} .
3 (it is|that is|that is) (okay|alright|good|nice|hot|yours|mine|fun|enough|silly|broken) .
2 (it is|that is|that is) (not broken|too big|right|a good one|all|for you|in there|in here|on there) .
3 (I|we|you) (do|did|can|will|have) (it|that) (too|again|now|already|right there|in there|on there) .
3 (it|that|this) (goes|fits|is|was) (in here|in there|on there|in the box|on the table|on your head) .
2 I (got|have|see|want|like|need|know|love|found) (it|you|that|one|this|them) .
2 it (is not|does not|can not|will not) (go|fit|move|work) (in|on) there .
2 {H} {H.does} not (want|like|have|need) {noun.any} .
1 {S} (can|can not|could|will|might) {V} .
1 {H} {H.looks} (happy|sad|sleepy|tired|hungry) .
1 {animal.the} {animal.lives} {where} .
2 I (think|know|guess|bet) {S} {S.is} {A.ing} .
2 I do not (know|think so|want it|like it|see it|understand|remember) .
1 you are (a good|a big|such a big|such a good|my little) {boy} .
1 {noun.that} must be {noun.adj} .
1 {noun.this} (can|must|might) be {noun.adj} .
1 {noun.those} {noun.is} (pretty|nice|big|broken|heavy|dirty) .
1 {noun.that} {noun.does} not (work|fit|go there|move|belong here) .
1 {noun.this} {noun.goes} {where} .

== adjectives 3 4
3 {noun.this} {noun.is} {noun.adj} and {noun2.that} {noun2.is} {noun2.adj} .
3 you have (a|one) {noun.attr} one and I have (a|one) {noun.attr} one .
2 that is a (very|really) (big|nice|pretty|small|good|silly|soft) {sg_noun.head} .
2 what (a big|a nice|a pretty|a silly|a dirty|a good) {sg_noun.head} !
2 look at {noun.these} {noun.attr} {noun.head} .
2 look at {noun.those} {noun.attr} {noun.head} .
2 {noun.these} {noun.attr} {noun.head} {noun.is} (mine|yours|{where}|broken|new) .
2 {noun.those} {noun.attr} {noun.head} {noun.is} (mine|yours|{where}|broken|new) .
1 {noun.these} {noun.attr} {noun.head} (went|fell|came) over there .
1 I like {noun.these} {noun.attr} {noun.one} .
1 which {noun.head} {noun.is} {noun.attr} ?
1 the {sg_noun.attr} {sg_noun.head} is bigger than the {sg_noun2.attr} {sg_noun2.head} .

== future 3 6
4 {S} {S.is} going to {V} .
3 {F} will {A} (.|.|{soon} .)
2 {H} will {A} (.|.|{soon} .)
2 {S} {S.has} to {A} .
2 you (have to|need to|got to|better) {A} .
2 {soon} {F} (can|will) {A} .
1 if {S} {V.s} {S2} can {A2} .
2 {H} {H.wants} to {A} .

== past 3 10
2 {noun.the} fell off (the table|the chair|the bed|the couch|the shelf|your head) .
1 {S} (looked at|played with|talked about|looked for) {noun.the} (.|.|{ago} .)
2 {N} asked (me|him|her|us|them|{P2}) (about {noun.the}|for {noun.a}|a question|to {A2}) .
1 {H} asked {H2.obj} to {A3} .
5 {S} {A.past} .
3 {H} {A.past} (.|.|{ago} .)
3 you {A.past} (.|.|{ago} .|did not you ?)
2 {noun.the} fell (down|off|on the floor|over|down {where}) .
2 {F} {A.past} {ago} .
2 {N} {A.past} {ago} .
2 {S} did not {V} .
2 {H} {A.past} and then {H.he} {A2.past} .
1 once upon a time there was {sg_animal.a} {where} .
1 and then {H} {A.past} .
2 {S} {S.was} {S.adj} {ago} .
3 {S} {A.past} (when|because|because|before|after) {S2} {A2.past} .
1 you did it (.|{honey} .|again .|all by yourself .)
1 who {A.past} ? / {P2} did .

== perfect 2 8
2 have you seen {noun.the} ?
2 {N} has (seen|looked at|asked for|heard) {noun.the} .
4 {P} has (already|) {A.en} .
7 {P} has {G.en} {O.the} .
3 {P} has not {G.en} {O.the} (yet|) .
3 has {P} {A.en} (yet|) ?
3 (has|has) {P} ever {V.en} ?
2 have {pl_animal.the} {A.en} ?
2 {N} has {B.en} .
2 {pl_person.the} have {A.en} .
2 where (has {N} gone|have they gone|has {sg_animal.the} gone) ?
2 {N} has (seen|thought about|forgotten|lost|hidden|thrown|drawn|given away) {noun.the} .
4 {S} {S.has} {A.en} .
3 {S.has} {S} {A.en} ?
3 {H} {H.has} {A.en} (.|again .)
2 have you ever {V.en} ?
2 {S} {S.has} not {V.en} (yet|) .
2 {H} had {A.en} before {H2} {A2.past} .
2 {H} had {A.en} {ago} .
2 what {S.has} {S} {G.en} ?
2 {noun.the} {noun.is} (broken|gone|hidden|finished|lost) .
1 (the|some) {pl_noun.head} have fallen {where} .
1 {S} {S.has} never {V.en} .
1 {C} {C.has} fallen .

== transfer 5 8
2 please (give|show|send|bring|hand) (me|him|her|us|them) {noun.the} .
2 {ago} (I|he|she|we|they) (gave|showed|sent|brought|handed) {P} {noun.the} .
4 (I|he|she|we|they) (saw|heard|helped|scared|chased|touched|hugged|kissed|tickled|watched|found) {P} .
4 {P} (saw|heard|helped|scared|chased|touched|hugged|kissed|tickled|watched|found) (me|him|her|us|them) .
4 (did|will|can|should|could) (I|he|she|we|they) (see|hear|help|scare|chase|hug|kiss|tickle|watch|find) {P} ?
4 (did|will|can|should|could) {P} (see|hear|help|scare|chase|hug|kiss|tickle|watch|find) (me|him|her|us|them) ?
1 {N} (threw|got|bought|sent) (me|him|her|us|them) {noun.that} .
4 {S} (gave|showed|brought|handed|sent) {H.obj} {noun.the} .
3 (give|show|bring|hand) {H.obj} {noun.your} .
2 (he|she|they|I|we|you) (gave|showed|brought|made|bought) {P} {noun.a} .
2 {P} (gave|showed|brought|made|bought) (me|him|her|us|them|you) {noun.a} .
2 (give|show) (me|him|her|them|us) {noun.the} .
2 (I|we|he|she|they) (gave|showed|took|brought) {noun.the} to {P} .
1 {H} {H.is} (giving|showing|bringing|handing) {P} {noun.the} .
1 did {S} (give|show|bring|hand) {P2} {noun.the} ?
1 can you (give|show|bring) {P} {noun.the} ?
1 what did {S} (give|show|bring) {P2} ?
1 {P} (told|read) {P2} a (story|funny story|good story) .
1 (he|she|they|we|I) (built|made|bought) {P} {sg_toy.a} .
1 who gave you {noun.that} ? / {P} gave (it|them) to me .

== reflexives 2 7
1 {S} (hurt|saw|washed|dressed) {S.himself} .
1 {I} {R.past} .
1 {we} {R.past} .
3 {H} saw {H.himself} in the (mirror|water|window|picture) .
3 {N} (thinks|thought|says|said|knows|knew) (that|) {N2} {R2.past} .
2 {sg_person.the} (near|beside|behind) {N2} {R.past} .
2 {sg_person.the} (who|that) (liked|saw|heard|helped|loved|found) {N2} {R.past} .
2 {N} wants {P2} to {R2} .
2 {N} (laughed|cried|smiled|came|waited) when {P2} {R2.past} .
2 {N} heard {P2} talking to {P2.himself} .
2 does {N} think (that|) {P2} {R2.past} ?
2 {P} is looking at {P.himself} in the (mirror|water|window) .
2 {P} (made|bought|got) {P.himself} {sg_clothing.a} .
2 {P} will tell {P.himself} a story .
2 {P} does not want to {R} .
2 (can|did|will) {P} {R} (?|?|{ago} ?)
5 {S} {R.past} .
3 {H} (hurt|saw|dressed|washed|fed) {H.himself} (.|.|{ago} .)
3 {S} can {A} by {S.himself} .
3 (will|can|could|would|should) {S} {R} ?
2 {S} will not {R} .
2 {S} {S.is} (washing|hurting|helping|scaring|drawing|painting|tickling|hiding) {S.himself} .
2 {P} {R.past} and {P2} {R2.past} .
2 {P} (thinks|knows|says|thought) (that|) {P2} {R2.past} .
2 {sg_person.the} that {P2} likes {R.past} .
2 {pl_person.the} that {P2} likes {R.past} .
2 {name}'s brother (hurt|saw|washed|dressed|scared) himself .
2 {name}'s sister (hurt|saw|washed|dressed|scared) herself .
2 {H} {H.is} talking to {H.himself} .
2 {H} {H.thinks} about {H.himself} {A.ing} .
2 {P} must think about {P.himself} {A.ing} .
2 {S} made {S.himself} {sg_food.a} .
2 did {S} {V} (all|) by {S.himself} ?
1 (look at|watch) {S.himself} in the mirror .
1 {H} {H.wants} to see {H.himself} .
1 {H} (should|could) tell {H.himself} (about it|a story|about {noun.the}) .
1 {P} {P.was} (looking at|working by|playing with|playing by) {P.himself} .
2 you {V} (yourself|by yourself) .

== quantifiers 3 8
3 there (are|were) (some|many|several|two|three) {pl_noun.bare} {where} .
3 (all|both|two of|some of|many of) the {pl_noun.bare} (are|were) {where} .
2 are there (some|many|any|two|three) {pl_noun.bare} {where} ?
2 are (all|both) the {pl_noun.bare} {where} ?
2 {sg_person.the} (has|saw|wants|found) {number} {pl_noun.head} (at least|at most) .
2 {sg_person.the} (can|could|will|would) {G} {number} {Op.head} (at least|at most) .
2 {P} {G.past} {number} {Op.head} (at least|at most) .
2 no {sg_person.head} {G.past} {more} {Op.head} .
2 no {sg_person.head} (has|saw|needs|wants) {more} {pl_noun.head} .
1 there is (a|another) (big|little|blue|red|nice|funny) {sg_noun.head} {where} .
4 {Q} {V.s} .
3 {Q} {Q.is} {A.ing} .
3 there {noun.is} {noun.weak} {where} .
2 there {noun.was} {noun.weak} {where} .
2 (is|was) there {sg_noun.a} {where} ?
2 there {pl_noun.is} (many|some|several|no|lots of|two|three|more) {pl_noun.bare} {where} .
2 there is (a|no|another|one) {sg_noun.head} {where} .
2 there {noun.is} not {noun.any} {where} .
2 (all of|most of|some of|two of|both of) {pl_noun.the} {pl_noun.is} {pl_noun.adj} .
4 (every|each) {sg_noun.head} is {sg_noun.adj} .
2 (every|each) {sg_noun.head} was {where} .
2 (several|both|many) {pl_noun.head} are {where} .
2 (all the|most|both|these two|some) {pl_noun.head} are {pl_noun.adj} .
3 no {sg_person.head} (can|could|will) {G} {more} {Op.head} .
2 no {sg_animal.head} (can|could|will) {G} {more} {Op.head} .
2 nobody (can|could) {G} {more} {Op.head} .
3 {S} {G.past} {most} {Op.head} .
2 {P} (has|can hold|can see|can carry|wants) {most} {pl_noun.head} .
1 you can have {most} {pl_food.head} .
1 we have {number} {pl_noun.head} .
1 (everybody|everyone|somebody|nobody) likes {pl_food.head} .

== negative_polarity 1 5
3 only {P} has ever {V.en} .
3 not even {P} has ever {V.en} .
3 not even {P} ever {V.past} .
3 only {P} ever {V.past} .
2 not even {P} (can|could|will|would|should) ever {V} .
2 does {N} like it at all ?
3 has {P} ever {V.en} ?
2 has {P} {V.en} yet ?
2 does {N} (like|want|need) {noun.the} at all ?
2 (could|should|would|will|did) {P} ever {V} ?
1 I do not (like|want|see) {noun.the} at all .
1 {P} has {G.en} only (one {Os.head}|{number} {Op.head}) .
4 only {P} ever {V.s} .
3 only {P} (can|could|will|would) ever {V} .
3 even {P} {V.s} .
3 even {P} (can|could|will|would) {A} .
3 (does|will|can|could|would|did) {P} ever {V} ?
2 {H.does} {H} ever {V} ?
2 did {S} ever {V} ?
2 {P} {P.does} not ever {V} .
2 (nobody|no one) ever {A.past} .
2 {S} never {A.past} .
2 no {sg_animal.head} ever {A.past} .
1 do you have any {pl_noun.head} ?
2 I do not (see|have|want|need) any {pl_noun.head} .
1 is (there anything|anybody) {where} ?
1 if {S} ever {V.s} tell me .
1 I do not (want|see|have|hear) anything .
1 even {P} (likes|found|saw|has|wants) some {pl_noun.head} .

== habits 3 8
6 {N} {G.s} {O.the} .
4 {sg_person.the} {G.s} {O.the} .
2 {H} {A.s} (.|.|every day .|every night .|each morning .|all the time .|a lot .|again .)
4 {N} {V.s} (.|.|every day .|a lot .)
3 {sg_animal.the} {A.s} (.|.|every morning .|each day .|at night .)
3 {sg_person.the} {A.s} (.|.|every day .|every night .)
2 {pl_animal.the} {A} (.|.|every day .|at night .)
2 {pl_person.the} {A} .
2 {sg_person.the} {B.s} .
2 {N} {B.s} and {N2} {B2.s} .
2 (I|we|you) (think|know|said|guess|thought) {sg_animal.the} {A.s} .
2 (I|we|you) (think|know|said|guess|thought) {sg_person.the} {A.s} .
2 {H} {H.does} not {A} (.|.|every day .|at all .|at night .)
2 {N} (plays with|talks about|looks at|sees|hears) {noun.the} (every|each) (day|night|morning) .
1 {N} (goes|walks|runs|comes) to {sg_place.the} every (day|morning) .
1 {sg_animal.the} (stays|lives|sleeps|hides|sits|waits|stands) {where} .
1 {pl_animal.the} (stay|live|sleep|hide|sit|wait|stand) {where} .
1 {sg_person.the} (works|stays|stands|waits|sits) {where} .
1 {N} (tells|shows|gives|brings|sends) {H.obj} {noun.the} every (day|night) .
3 {N} (loves|likes|needs|wants|holds|remembers|forgets|hears|sees|wears|carries|counts|uses) {sg_clothing.the} .
1 {N} (loved|liked|needed|wanted|remembered|forgot|heard|lost) {noun.the} .
1 {H} (stayed|lived|worked|waited|stood|talked|looked) {where} .
1 (are you|is {N}|is {sg_person.the}) (staying|living|working|waiting|talking|thinking) {where} ?

== body 6 2
3 where {body.is} {body.your} ? / there {body.he} {body.is} .
3 (touch|show me|give me|wash|wiggle|move) {body.your} (.|!)
2 is that {N}'s {sg_body.head} ?
2 those are {N}'s {pl_body.head} .
2 what (big|little|pretty|nice|dirty|cold) {pl_body.head} you have !
2 {body.your} {body.is} {body.adj} .
2 how many {pl_body.head} (do you have|does {N} have|do you see) ?
1 where are your {pl_body.head} ?
1 (one|this|my) {sg_body.head} and two {pl_body.head} .
1 {N} (washed|touched|hurt|kissed|tickled) {sg_body.your} .
1 I see (a|your|{N}'s) {sg_body.head} .
1 I (see|found|got) (your|{N}'s) {pl_body.head} .
1 do not put {sg_thing.the} in your (mouth|nose|ear|hair|eye) !
1 {sg_animal.the} has (big|little|tiny|funny|four|two) {pl_body.head} .

== outings 2 4
3 we (went|walked|drove|came|ran) to {sg_place.the} {ago} .
2 do you (want|like) to go to {sg_place.the} ?
2 {place.the} {place.is} {place.adj} .
2 there are (two|some|many|no) {pl_place.head} {where} .
2 {N} (saw|found|likes) (two|some|many|those) {pl_place.head} .
2 (these|those) {pl_place.head} are (big|little|old|new|pretty|nice|far away) .
2 we (saw|found|bought|lost|left) {noun.the} (at|in) the {sg_place.head} {ago} .
2 {H} will (take|bring|carry) {noun.the} to the {sg_place.head} (.|{soon} .)
2 {N} {A.past} at the {sg_place.head} (.|{ago} .|today .)
1 who (is|was) at the {sg_place.head} ?
1 did you see {animal.the} at the {sg_place.head} ?
1 where {place.is} {place.the} ?

== page_of_things 0 0
3 {shown.a} .
3 (that is|it is|here is) {sg_shown.a} .
3 (those are|they are|these are) {pl_shown.head} .
2 what {shown.is} {shown.these} ? / {shown.a} .
2 where {shown.is} {shown.the} ? / there {shown.he} {shown.is} .
2 (look at|see) {shown.those} {shown.head} .
1 do you see {shown.those} {shown.head} ?
2 I see (two|three|four|some|many) {pl_shown.head} .
1 (can you find|do you see) {shown.the} ?
1 (show me|point to|find) {shown.the} .
2 {shown.those} {shown.is} {shown.adj} .
2 there are (two|three|some|many|lots of) {pl_shown.head} on this page .
1 there is {sg_shown.a} on this page .
1 how many {pl_shown.head} are there ?
1 {shown.these} {shown.head} {shown.is} (big|little|nice) .

== page_of_actions 0 0
4 {sg_person.the} {V.s} .
3 {N} {V.s} .
2 look {sg_person.the} {V.s} every day .
3 {N} has {V.en} .
2 {sg_person.the} has already {V.en} .
2 has {sg_person.the} {V.en} yet ?
2 the (boy|girl|lady|man|baby) {V.past} .
1 here {sg_person.the} {A.s} and there {N} {A2.s} .
1 does {sg_person.the} {V} ? / yes {sg_person.he} does .
1 (I think|see) {sg_person.the} {V.s} .

== relatives 1.5 10
2 {sg_animal.the} {where} has {noun.a} .
2 {pl_animal.the} {where} have {noun.a} .
2 {sg_person.the} {where} does not (like|want|have|need) {noun.the} .
2 {pl_person.the} {where} do not (like|want|have|need) {noun.the} .
2 {animal.the} {where} {animal.is} (looking at|waiting for|playing with) {N} .
2 {noun.the} {where} {noun.is} (not|very|so|really) {noun.adj} .
2 {noun.the} {where} {noun.was} {noun.adj} .
3 {O.the} that {sg_person.the} {G.past} {O.was} (not|very|so) {O.adj} .
2 {animal.the} that (chased|scared|bit|saw|heard|touched|watched) {animal2.the} {animal.is} {animal.adj} .
2 {animal.the} that (chased|scared|bit|saw|heard|touched|watched) {animal2.the} {animal.was} {animal.adj} .
3 {N} (knows|knew|forgot|heard|remembers|remembered) what {P2} {G2.past} .
3 {N} (knows|knew|forgot|heard|remembers|remembered) that {P2} {G2.past} {O2.the} .
3 {N} (knows|knew|forgot|heard|remembers|remembered) who {G2.past} {O2.the} .
1 {sg_person.the} (knows|knew|heard|remembers|remembered) that {N2} {G2.past} {O2.the} .
1 {sg_person.the} (knows|knew|heard|remembers|remembered) (who {G2.past} {O2.the}|what {N2} {G2.past}) .
2 do you (know|remember) (that {N2} {G2.past} {O2.the}|who {G2.past} {O2.the}|what {N2} {G2.past}) ?
2 (I|we) (know|knew|forgot|heard|remember) (who|what) {P} (found|chased|brought|liked|hugged|scared) .
2 (I|we) (know|knew|heard|remember) that {P} (found|chased|brought|liked|hugged|scared) {animal.the} .
4 {C} {C.is} {C.adj} .
4 {C} {C.was} {C.adj} .
3 {C} {C.is} {where} .
2 where {C.is} {C} ?
4 {O.the} that {S} {G.past} {O.is} {O.adj} .
3 that is {Os.the} that {S} {G.past} .
1 those are {Op.the} that {S} {G.past} .
3 {S2} (saw|found|got|liked|wanted|had|needed) {O.the} that {S} {G.past} .
2 {S2} (saw|found|got|liked|wanted) {O.the} that {S} (could|can|will) {G} .
2 {P} (saw|found|knows|likes|heard) {animal2.the} that {animal2.is} {A2.ing} .
2 {P} (saw|found|knows|likes|helped|watched) {sg_person2.the} that (can|could|will) {A2} .
2 {P2} knows what {S} {G.past} .
2 (I|we|you|{name}) (know|remember|forgot|saw) what {S} {G.past} .
2 (I|we) (know|wonder|see|remember) who {A.past} .
1 {P2} knows who (can|will|could) {A} .
2 do you know (what {S} {G.past}|where {noun.the} {noun.is}|who {A.past}|what {H} {H.is} {G.ing}) ?
1 tell me what {S} {G.past} .
1 is that {Os.the} that {S} {G.past} ?
1 are those {Op.the} that {S} {G.past} ?
1 there {noun.is} {noun.the} that we saw {ago} .
1 I like {C} .
1 show me {pl_noun.the} that are {where} .
1 here is the one that {S} {G.past} .
1 remember {sg_person.the} that {A.past} ?

== subordinate 1 9
2 (I|we) (thought|said|knew) {P} {A.past} .
2 {N} (thinks|thought|says|said|knows) {P2} (saw|helped|found|chased|hugged|watched) (me|him|her|us|them) .
2 {N} (thinks|thought|says|said|knows) (I|he|she|we|they) {A.past} .
2 {P} {A.past} when (I|he|she|we|they) (saw|heard|chased|helped|scared) {sg_animal.the} .
2 {N} {B.past} (and|before|after|when) {N2} {G2.past} {O2.the} .
2 {N} {G.past} {O.the} (and|before|after|when) {N2} {B2.past} .
2 did {N} {G} {O.the} before {N2} {B2.past} ?
2 {P} (will|did not|can not|could) {B} .
4 I (think|guess|know) (that|) {S} {V.s} .
3 {H} {H.thinks} (that|) {S2} {V2.s} .
6 {S} {S.is} {A.ing} because {S.he} {S.is} {S.adj} .
2 {N} (said|told me|knows) that {S2} {A2.past} .
2 you can {A} (after|before) (you|we) {A2} .
2 {H} {A.past} (while|before|after|because) {H2} {A2.past} .
2 {H} {A.past} before {A2.ing} .
2 {H} {A.past} (after|while|without) {A2.ing} .
2 if you {A} you will {A2} .
2 do you think (that|) {S} {V.s} ?
2 what do you think {S} {S.is} {G.ing} ?
1 {I} am {A.ing} so (that|) you can {A2} .
1 I do not think {S} {V.s} .
1 {S} {A.past} but {S2} did not (.|{A2} .)
1 let me know (if|when) you {V} .
1 it is (too hot|too late|time|too early|fun|nice) to {A} .
1 I hope (that|) {H} {V.s} {soon} .

== adjuncts_and_coordination 1 6
3 what (did|can|could|should|will) {P} {G} (before|after|while|without) {G2.ing} {O2.the} ?
2 what did {P} do (before|after) {A.ing} {ago} ?
2 which {Os.head} (did|can|could|should|will) {P} and {P2} {G} ?
2 (did|can|will) {P} and {P2} {G} {O.the} ?
2 (did|will) {P} {A} (before|after|without|while) {A2.ing} ?
3 what did {S} {G} (before|after|while|without) {A2.ing} ?
3 who did {S} (see|help|hug|kiss|watch|call) (before|after|while|without) {A2.ing} ?
2 what should {S} {G} (before|after|while|without) {A2.ing} ?
2 who should {S} (help|hug|kiss|watch|call) (before|after|while|without) {A2.ing} ?
2 what (can|could|will|must) {P} {G} (while|before|after|without) {A2.ing} ?
3 what (did|can|could|should|will|must) {P} and {P2} {G} ?
3 who (did|can|could|should|must) {P} and {P2} (see|help|watch|hug|chase|hear) ?
2 what are {P} and {P2} {G.ing} ?
2 (what|who) were {P} and {P2} (watching|looking for|waiting for|looking at|talking about|playing with) ?
3 {P} and {P2} are {A.ing} .
2 {P} and {P2} {A.past} .
2 {P} (has|found|wants|likes) {noun.the} and {noun2.the} .
2 {noun.the} and {noun2.the} are {where} .
2 you and {P} (can|will|should) {A} .
2 first {H} {A.past} and then {S2} {A2.past} .
1 {S} {A.past} and {A2.past} .
1 do you want {noun} or {noun2} ?
1 (should|can) {P} and {P2} {A} ?

== ellipsis 1 4
2 {P} {G.past} one {Os.attr} {Os.head} but {P2} {G.past} (two|three|four|five|six|seven|several|many) .
2 (will|can|could|should) {P} {G} one {Os.attr} {Os.head} if {N2} {G.s} (two|three|four|several) ?
2 {N} (saw|found) (two|five|six) {pl_noun.attr} {pl_noun.head} and {N2} (saw|found) (one|seven|eight|nine|ten) .
4 {P} has (two|three|some) {pl_toy.attr} {pl_toy.head} and {P2} has (more|two|three|four|five) .
4 {P} {G.past} one {Os.attr} {Os.head} and {P2} {G.past} (more|two|three|four|several) .
3 you have (two|three|four|some) {pl_noun.attr} {pl_noun.head} and I have (more|one|five|some too) .
2 {P} {G.past} (two|three|four|some) {Op.attr} {Op.head} and {P2} {G.past} (more|one|some|many) .
2 {S} {G.past} {Op.that} and {S2} {G.past} these .
2 you have one {sg_noun.head} . / do you want (another one|more|two|a {noun.attr} one) ?
2 {P} can {A} and {P2} can too .
2 {P} did not {V} but {P2} did .
1 I want the {noun.attr} {noun.one} .
1 you take this one and I take that one .
1 do you want {noun.this} or {noun.that} {noun.one} ?

== tags 3 4
4 {S} {S.is} {A.ing} (huh|right|okay) ?
3 (that is|it is) {sg_noun.adj} is not it ?
2 you (like|want|see|have) {noun.the} do not you ?
2 you can {A} can not you ?
2 he {A.past} did not he ?
2 she is {A.ing} is not she ?
2 they are {A.ing} are not they ?
2 {noun.this} {noun.is} {noun.adj} (huh|right) ?
1 you did not {V} did you ?
1 {we} will {A} okay ?

== routines 5 4
2 one two three (.|four .|four five .|go !)
1 how many ? / one two three {pl_noun.head} .
2 (ready set|one two three) go !
2 (good morning|night night|good night|bye bye|hello|hi) {honey} .
2 (thank you|thank you very much|you are welcome|excuse me|no thank you|yes please) (.|{honey} .)
2 say (hi|bye bye|good night|thank you) to {H.obj} .
1 can you say (hi|bye bye|good night|thank you) to {H.obj} ?
2 (wave|say) bye bye .
1 round and round {sg_noun.the} goes .
1 round and round {pl_noun.the} go .
1 peekaboo I see you .
1 uhoh {noun.the} fell down .
1 (clap|wash|shake|give me) your hands .
1 how do {pl_animal.head} go ? / {sound} {sound} {sound} .
1 time for (bed|lunch|a bath|a nap|dinner|breakfast|school) (.|{honey} .)
1 where is your (nose|mouth|head|foot|knee|tongue|face) ? / (there|here) it is !
1 where are your (eyes|ears|toes|feet|fingers|teeth|hands) ? / (there|here) they are !
1 twinkle twinkle little star .
1 (happy birthday|bless you|good job|well done|good for you) {honey} .

== fragments 7 4
3 {where} .
3 (with|for|and|like) {noun.the} (.|?)
2 (and|not|just) {noun.a} (.|?)
2 {noun.the} {where} (.|?)
2 on {noun.the} ?
2 {A.ing} .
2 one more {sg_noun.head} .
2 {noun.your} (?|.)
2 {noun.adj} {noun.head} .
2 (not that one|this one too|right over there|one more time|a little bit|all by yourself|no more now) .
9 and {noun.the} +
14 (so|but|and then|because|well I|and the|if you|and you|that is the) +
1 {P} and {P2} .
1 too {noun.adj} .
1 (your|my|{name}'s) {noun.bare} .
1 {animal.the} ? / {animal.the} {animal.is} {A.ing} .
"""


class Register(NamedTuple):
    """One register: its weight at the youngest and at the oldest age, and its templates."""

    name: str
    young: float
    old: float
    templates: tuple[str, ...]
    cumulative_weights: tuple[float, ...]


@cache
def registers() -> dict[str, Register]:
    """``REGISTERS``, parsed, by name."""
    found = {}
    for block in REGISTERS.split("== ")[1:]:
        head, *lines = block.strip().splitlines()
        name, young, old = head.split()
        rows = [line.split(" ", 1) for line in lines]
        weights = tuple(accumulate(float(weight) for weight, _ in rows))
        templates = tuple(template for _, template in rows)
        found[name] = Register(name, float(young), float(old), templates, weights)
    return found
