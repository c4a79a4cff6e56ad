"""The phrases by which ``speech`` reads an agent's message: regular expressions over folded words.

Folded words have no case, punctuation or contractions: ``I've`` is ``i have``, ``can't`` is ``cannot``, ``4`` is ``four``.
A pattern is a list of alternatives, so that a phrase that was missed is one line more.
"""

from __future__ import annotations

import re


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{alternative})" for alternative in alternatives))


def _words(text: str) -> str:
    return "(?:" + "|".join(text.split()) + ")"


# What agents do in the businesses of the suites: what they can do ("I can ..."), and what they have done ("I have ...").
_DO = _words("""
    activate add adjust allocate amend apply approve arrange assign authorise authorize block book cancel change close
    collect convert correct create credit deactivate delete deliver deposit disable dispatch downgrade enable enrol enroll
    escalate exchange execute expedite extend file finalise finalize fix forward freeze give grant honor honour increase
    initiate install issue launch lift link lock lodge log lower make mark merge modify move open order pause pay place
    prioritise prioritize process provision raise reactivate rebook record redeem reduce refer refund register reimburse
    reinstate reissue release remove renew reopen reorder replace request resend reschedule reserve reset resolve restore
    resume return reverse revert revoke route schedule send set settle ship start stop submit suspend swap switch
    terminate transfer unblock undo unfreeze unlink unlock update upgrade waive wipe withdraw
""")
_DONE = _words("""
    actioned activated added adjusted allocated amended applied approved arranged assigned authorised authorized blocked
    booked canceled cancelled changed closed collected completed converted corrected created credited deactivated deleted
    delivered deposited disabled dispatched downgraded emailed enabled enrolled exchanged executed expedited extended
    filed finalised finalized finished fixed frozen granted handled honored honoured increased initiated installed issued
    launched lifted linked locked lodged logged lowered mailed marked merged modified moved notified opened ordered paid
    paused placed posted prioritised prioritized processed provisioned raised reactivated rebooked recorded redeemed
    reduced refunded registered reimbursed reinstated reissued released removed renewed reopened reordered repaid replaced
    requested resent rescheduled reserved reset resolved restored resumed returned reversed reverted revoked scheduled
    sent set settled shipped sorted started stopped submitted suspended swapped switched terminated transferred unblocked
    undone unenrolled unfrozen unlinked unlocked updated upgraded waived wiped withdrawn
""")
_SIMPLE_PAST = _words("froze unfroze withdrew undid")
_MADE = r"made (?:\w+ ){0,3}(?:change|update|payment|transfer|correction|adjustment|request|booking|exception)s?"
_ADVERBS = (
    r"(?:(?:now|just|already|also|successfully|gone ahead and|went ahead and|then|therefore|immediately|permanently|"
    r"temporarily|fully|safely|hereby|since|all|officially|instead|accordingly) )*"
)
_SOMEBODY = r"(?:team|specialist|agent|representative|department|colleague|someone|somebody|they|manager|supervisor|we|desk|officer|analyst|advis[eo]r|staff|human)s?"

DONE_BY_SENTENCE = _any(
    rf"\b(?:i|we) (?:have |had )?{_ADVERBS}(?:{_DONE}|{_SIMPLE_PAST}|{_MADE}|put|taken care of|took care of)\b",
    rf"\b(?:has|have|had) {_ADVERBS}been {_ADVERBS}(?:{_DONE}|made|put|done|taken care of|dealt with|set up)\b",
    rf"\b(?:was|were) (?:successfully {_DONE}|{_DONE} (?:successfully|as (?:you )?(?:requested|asked)))\b",
)
DONE = _any(
    DONE_BY_SENTENCE.pattern,
    rf"\bis (?:now |all |fully |successfully )*(?:{_DONE}|done|complete|taken care of)\b",
    r"\b(?:is|are) now\b(?! (?:being|pending|going|waiting))",
    rf"^(?:{_ADVERBS})(?!set|reset)(?:{_DONE})\b(?!.*\b(?:can|cannot|will|are|is|must|may|should|would|has|have|was|were|by|on)\b)",
    rf"^(?!.*\b(?:i|you|we|is|are|was|were|be|being|been|not|no|to|can|cannot|will|has|have|get|if|when|once|until|date|"
    rf"time|amount|which|last|recently)\b)(?:[a-z0-9]+ ){{1,6}}(?:{_DONE}|complete|done|confirmed|successful)"
    r"(?: successfully| as requested| now)?$",
    r"^(?:(?:ok|okay|great|yes|yep|good news|perfect|and|it is|that is|this is|everything is|alright) )*"
    r"(?:all )?(?:done|set|completed?|sorted|finished|settled|resolved|fixed)(?: successfully| now| for you)?$",
    r"\ball (?:set|done|sorted|taken care of)\b",
    r"\bon (?:its|the|their) way\b|\bdone that\b|\bthat is done\b",
    r"(?<!verification )(?<!check )(?<!authentication )\b(?:was|is|has been|were) successful\b",
    r"\bno (?:further|additional|other|more) action\b",
    r"\bnothing (?:else|more|further) (?:to do|is needed|needs|you need|is required)\b",
    r"\byou (?:do not|will not) need to do anything\b",
    r"\byou (?:will|should|shall|are going to) (?:shortly |soon |now |also |then )*"
    r"(?:receive|see|get|be (?:refunded|credited|reimbursed|notified))\b",
)
ESCALATED = _any(
    rf"\b(?:i|we) (?:have |had |am |are )?{_ADVERBS}"
    r"(?:escalat(?:ed|ing)|forward(?:ed|ing)|pass(?:ed|ing)|referr(?:ed|ing)|hand(?:ed|ing)|rout(?:ed|ing))\b",
    rf"\b(?:has|have|is|are|was|were) {_ADVERBS}(?:been |being )?{_ADVERBS}"
    r"(?:escalated|forwarded|passed (?:on|to)|referred|handed|routed|under review)\b",
    r"^(?:escalated|forwarded|referred|passed on|handed over)\b",
    r"\b(?:transferr(?:ing|ed)|connect(?:ing|ed)) you (?:now |over |directly )*(?:to|with)\b",
    rf"\b{_SOMEBODY}\b(?: \w+){{0,4}}? (?:will|shall|is going to|should) (?:also |then |soon |shortly |now )*"
    r"(?:contact|reach out|get back|be in touch|follow up|call|email|review|investigate|handle|take over|assist you|"
    r"respond|reply|process|notify|take it from here)\b",
    rf"\b{_SOMEBODY}\b(?: \w+){{0,4}}? (?<!we )(?:will|shall) (?:look into|examine|decide)\b",
)
_CANNOT = (
    r"(?:cannot|could not|(?:am|are|is|was|were|been|be) (?:not able|unable) to|not been able to|unable to|"
    r"not able to|must not)"
)
_LOOKING_UP = _words(
    "find locate see identify determine tell match retrieve access reach load read understand recognise recognize verify"
    " confirm get look pull detect spot hear"
)
REFUSED = _any(
    rf"\b{_CANNOT}\b(?! {_ADVERBS}(?:{_LOOKING_UP}|be (?:undone|found|located|verified|identified|confirmed|matched))\b)",
    r"\bnot (?:be )?(?:eligible|entitled|possible|permitted|allowed|authori[sz]ed|covered|available|refundable|"
    r"approved|refunded|waived|granted|reversed|honou?red|something (?:that )?(?:i|we))\b",
    r"\b(?:does|do) not (?:qualify|meet|allow|permit|cover|apply|support|offer)\b",
    r"\bdo not have (?:the |any |direct )?(?:access|permission|authority|authori[sz]ation|ability|tools?|means|option)\b",
    r"\b(?:must|have to|had to|need to) (?:\w+ )?(?:decline|refuse|deny|reject)\b",
    rf"\b(?:has|have|is|are|was|were) {_ADVERBS}(?:been )?{_ADVERBS}(?:declined|denied|rejected|refused|ineligible)\b",
    rf"\b(?:i|we) (?:have )?{_ADVERBS}(?:declined|denied|rejected|refused)\b",
    r"\b(?:request|application|claim|dispute|refund|waiver) (?:declined|denied|rejected|refused)\b",
    r"\bineligible\b|\bagainst (?:\w+ )?(?:policy|policies|rules)\b|\btoo late to\b|\boutside (?:of )?(?:the|our|my)\b",
    r"\bno longer (?:possible|eligible|available|refundable|within)\b",
    r"\bnothing (?:more |else |further )?(?:that )?(?:i|we) can do\b",
    rf"\bwill not (?:be )?(?:{_DONE}|{_DO}|able)\b",
    r"\byou (?:will )?(?:need|have) to (?:contact|visit|call|go to|speak|reach out)\b",
    r"^(?:so |therefore )?please (?:contact|call|visit|speak|reach out)\b(?!.* if\b)(?! (?:me|us) (?:any|again|with))",
)

# What takes a claim back.
CONDITION = _any(
    r"\b(?:once|if|when|whenever|until|till|unless|before|as soon as|in case|should|would|could|whether|might|may|want|"
    r"wants|like|ask|asked|wish|to have|to be)\b",
    r"\bafter\b(?! (?:\w+ing|a|careful|review)\b)",
)
CONDITIONAL_SENTENCE = re.compile(r"^(?:and |but |so )?(?:once|if|when|unless|until|before|as soon as)\b")
NEGATION = re.compile(r"\b(?:not|no(?! (?:problem|worries))|nothing|none|neither|never|cannot|nor)\b")
NOT_YET = _any(
    r"\b(?:until|unless|before) (?:you|i|we|your|receiving|verifying|confirming|knowing|having)\b|\bwithout\b",
    r"\bbeen (?:able|unable) to\b.*\byet$",
)
REPORTED = _any(
    r"\bi (?:can )?(?:see|notice|noticed|found|understand|read)\b",
    r"\b(?:looks|seems|appears|look) (?:like|as|to|that)\b|\bit (?:seems|appears)\b",
    r"\baccording to\b|\b(?:record|system|account|history|file|note|log)s? (?:shows?|indicates?|says?)\b",
    r"\byou (?:said|told me|say|mentioned that)\b|\bsorry (?:to hear|that|about)\b",
    r"\b(?:that|which|who|only|any|every|each)$",
)
STATUS = _any(
    r"\b(?:been|is|are)(?: \w+)? (?:locked|blocked|flagged|suspended|restricted|frozen|disabled)\b.*\b(?:due to|because)\b",
    r"\b(?:currently|still)\b",
    r"\bis .*\b(?:if|when|once|only|usually|normally|typically|unless|always)\b",
    r"\b(?:sent|resent|issued|emailed) .*\b(?:code|passcode|otp|one time)\b",
    r"\bopened (?:up )?your (?:account|profile|file|record)\b|\blogged in\b",
)

# What is asked.
ASKS_FIRST = re.compile(
    r"^(?:(?:and|but|so|also|or|please|now|then|if so|ok|okay|in that case) )*"
    r"(?:what|which|who|whose|whom|where|when (?:did|do|was|were|is)|why|how|is|are|was|were|do|does|did|can|could|would|"
    r"will|shall|should|may|might|have you|has|any|anything)\b"
)
UNMARKED_QUESTION = re.compile(
    r"^(?:(?:and|but|so|also|ok|okay|sure|thanks|thank you|please|great|first|now|then|hi|hello) )*"
    r"(?:(?:could|can|would|will|do|did|are|have) you|(?:may|can|shall|should|could) (?:i|we)|"
    r"(?:what|which|who|where|when|how) (?:is|are|was|were|do|did|does|would))\b"
)
CLOSING_QUESTION = _any(
    r"^(?!.*\b(?:tell me|provide|share|details?|information|describe)\b).*(?:\b(?:anything|something|what|who) (?:else|"
    r"further|more|other)\b|\bany (?:other|further|more|additional|another)\b|\bother questions\b|\belse (?:i|we) can\b)",
    r"^(?:do you have )?any questions\b|\bneed (?:any )?more help\b|\bhelp you with anything(?: today)?$",
    r"\b(?:does|did|has) (?:that|this)(?: \w+)? (?:help|helped|answer|resolve|resolved|solve|address)\b",
    r"\bare you (?:satisfied|happy) with\b|\bdid (?:i|we) (?:answer|help|resolve)\b",
    r"\banything (?:that )?(?:you (?:would|want|need)|i can)\b",
)
WAITING_QUESTION = re.compile(
    r"\b(?:(?:^|please |just |you )hold on|wait (?:a|one|while|for|here)|(?:can|could|would) you (?:please |kindly )?wait|bear with|(?:a|one) (?:\w+ )?(?:moment|minute|second)s?|hold the line|a few (?:moments|minutes))\b"
)
CHOICE = _any(
    r"\b(?:what|how|which(?: \w+){0,2}) you (?:would )?(?:like|prefer|want|wish)\b",
    r"\b(?:what|which|how)\b(?: \w+){0,3} (?:would|do|should|can|shall) (?:you|i|we)\b(?: \w+){0,2}? (?:like|prefer|want|do)\b(?! to know)",
    r"\b(?:which|what) (?:option|one) (?:would|do|should|shall)\b|\bwhat (?:is|are) your (?:preference|choice)s?\b",
)
SMALL_TALK = _any(
    r"\bhow (?:else )?(?:can|may|could) (?:i|we) (?:\w+ )?(?:help|assist|be of|support)\b",
    r"\bwhat (?:can|may|could) (?:i|we) (?:do for|help|assist)\b|\bhow are you\b|\bwhat brings you\b",
    r"\bwhat (?:seems to be|is) the (?:problem|issue|matter)\b|\bwhat (?:can|would|do) (?:i|you) (?:like |need |want )?help\b",
    r"\b(?:something|anything) (?:specific |in particular )?(?:that )?(?:i|we) can (?:help|do|assist)\b",
    r"^(?:can|may|could) (?:i|we) (?:help|assist) you(?: today)?$",
)
_POLITELY = r"(?:(?:please|kindly|also|just|quickly|perhaps|first|then|again|possibly|maybe) )*"
ASKS_TO_BE_TOLD = _any(
    rf"\b(?:may|can|could|might) (?:i|we) {_POLITELY}(?:have|get|ask|know|take|see|check|verify|obtain|trouble)\b",
    rf"\b(?:can|could|would|will|are) you {_POLITELY}(?:be able to |able to |mind |like to |willing to )?(?:provid|tell|"
    r"shar|giv|specify|send|let (?:me|us) know|clarify|describ|remind|stat|supply|enter|explain|repeat|say|name|help me with)",
    r"^(?:\w+ ){0,2}(?:what|which|who|whose|where|why|how (?:much|many|long|did|do|would|should))\b",
    r"^(?:and )?when (?:did|do|was|were|is|would|will|should|exactly)\b",
)
PROPOSAL = _any(
    r"\b(?:shall|should|may|can|could) (?:i|we)\b",
    r"\bwould you (?:still |also |rather |then )?(?:like|want|prefer|agree|accept|mind if)\b",
    r"\bdo you (?:still |also |really |then )?(?:want|wish|agree|confirm|consent|accept|approve|authori[sz]e)\b",
    r"\bdo you (?:also |still )?need (?:a|an|the|me|us)\b|\bwill you accept\b|\byes or no\b|\by n$|\bif i\b",
    r"\b(?:is|are) (?:that|this|it|these|everything|you|the|your)(?: \w+){0,12} "
    r"(?:ok|okay|alright|all right|correct|right|fine|acceptable|good|accurate)\b",
    r"\b(?:does|do) (?:that|this|it|these)(?: \w+){0,3} (?:work|sound|look|suit)\b|\bhow does (?:that|this)\b",
    r"\b(?:sound|look)s? (?:good|ok|okay|right|fine)\b|\bis (?:this|that|it) what you\b",
    r"\bare you (?:\w+ )?(?:sure|ok|okay|happy|fine|comfortable|ready|certain)\b",
    rf"^(?:\w+ )?(?:proceed|continue|go ahead|ok|okay|agreed|correct|right|ready|{_DO})\b",
    r"\b(?:proceed|go ahead|continue|right|correct|ok|okay)$",
)
_DETAIL = (
    r"(?:confirm|verify|validate|double check|check)(?:ing)? (?:for me |with me |to me |again )*"
    r"(?:what|which|when|where|who|how|(?:that|if|whether) (?:the|your|you (?:still )?(?:have|did|made|live|recogni[sz]e|received|lost))|"
    r"(?:your|the|a|some)\b(?! (?:explicit |final )?(?:request|agreement|consent|decision|"
    r"choice|intent|intention|approval|cancellation|transfer|order|payment|actions?|changes?|above|following|refund|"
    r"replacement|closure|plan|booking|return|exchange)\b(?! (?:number|date|amount|id|reference|details|information))))"
)
CONFIRM_DETAIL = re.compile(rf"\b{_DETAIL}")
CONFIRM = re.compile(r"\bconfirm\b")
_PLEASE = r"\b(?:please|kindly|you to|you (?:must|need to|have to|could|can))(?: (?:first|also|either|then|now|just|briefly))* ?"
_OPENS = r"^(?:(?:and|also|first|then|so|now|next|ok|okay|thanks|thank you|sure|great|to proceed|to continue) )*"
_ASKED = rf"(?:{_PLEASE}|{_OPENS})"
REQUEST_DETAIL = re.compile(rf"{_ASKED}{_DETAIL}")
REQUEST_CONFIRMATION = _any(
    r"\b(?:once|when|after|if|as soon as|until|unless) you (?:have |can |could )?(?:confirm(?! (?:your|which|what|the))|approve|agree|authori[sz]e|"
    r"consent|accept|say (?:so|yes)|are (?:ok|okay|happy|ready)|give (?:me |us )?(?:your |the )?(?:consent|approval|go))",
    r"\b(?:reply|respond|answer|say|type|write) (?:with )?(?:a )?(?:yes|confirm|ok|proceed|y)\b|\byes or no\b|\byes no\b",
    r"\b(?:need|require|await|awaiting|get|have|waiting for|wait for|with|upon|without|receive|for|on) your "
    r"(?:explicit |final |written |clear )?(?:confirmation|approval|permission|consent|go ahead|authori[sz]ation|agreement)"
    r"\b(?! (?:number|email|code|letter))",
    r"\b(?:need|require|await|awaiting|waiting for) (?:explicit |final |written |clear )?confirmation\b(?! (?:number|email|code))",
    rf"{_ASKED}confirm\b(?! (?:your|which|what))",
    r"\blet me know (?:if|whether|when) (?:this|that|it|you agree|i (?:should|may|can)|to proceed|you are (?:ok|okay|happy|ready))",
    r"\b(?:if|whether) you (?:would like|want|wish)(?: me)? to (?:proceed|continue|go ahead)\b",
    r"\bplease (?:approve|authori[sz]e|agree)\b",
)
LABEL = re.compile(
    r"^(?!.*\b(?:i|we|here|these|this|following|below|summary|is|are|has|have|found|status|done)\b)(?:\w+ ){0,4}\w+$"
)
REQUEST_CHOICE = re.compile(
    rf"{_ASKED}(?:(?:choose|select|pick|decide)\b|"
    r"(?:clarify|specify|indicate|tell me|let me know) (?:what|how) you (?:would )?(?:like|prefer|want|wish)\b)"
)
REQUEST = _any(
    rf"{_PLEASE}(?:provide|share|send|give(?! me (?:a|one|just)\b)|tell|specify|enter|supply|state|include|describe|clarify|"
    r"indicate|reply with|upload|attach|name|list|mention|explain|type|submit|advise|answer|fill in|"
    r"let (?:me|us) know(?! if| whether| when you))\b",
    rf"{_OPENS}(?:provide|share|send(?! by)|give me(?! (?:a|one|just)\b)|tell me|specify|enter|supply|clarify|reply with)\b",
    r"\b(?:once|when|as soon as|after|if|until|unless) you (?:can |could )?(?:provide|share|tell|send|give|supply|specify)\b",
    r"\b(?:once|when|as soon as|after|if|until|unless) you have (?:provided|shared|told|sent|given|supplied|specified)\b",
    r"\b(?:let (?:me|us) know|tell (?:me|us)) (?:your|the|which|what|when|where|who|how|why)\b",
    r"\b(?:i|we) (?:(?:will|would|do|still|also|just|only|first|now) )*(?:need|require)"
    r" (?:to know|to ask|to have|your|some|a few|a bit|more|additional|the following|a couple|you to)\b",
)
NEED = _any(
    r"\b(?:needs?|needed|requires?|required|must|have to|missing|in order to|without|until|necessary|let me know)\b",
    r"\bbefore (?:i|we)\b|\b(?:once|when|as soon as|after|if) (?:i|we) (?:have|get|receive|know)\b|\bplease$",
    r"\bto (?:proceed|continue|verify|confirm|help you|assist you|locate|find|identify)\b",
)
OFFER = _any(
    rf"(?<!before )(?<!until )(?<!so )(?<!that )(?<!what )(?<!how )\b(?:i|we) (?:can|could) (?:(?:also|instead|still|certainly|gladly|however|only|then|now|of course) )*{_DO}\b"
    r"(?!.*\b(?:once|when|after|until|within|if) (?!you\b))",
    r"\bif you (?:would )?(?:like|want|wish|prefer)\b.*\b(?:i|we) (?:can|could|will|would)\b",
    r"\b(?:let me know|tell me|say) if you (?:would )?(?:also )?(?:like|want|wish|prefer)(?: me| us)? to\b",
    r"\b(?:let me know|tell me) if you (?:would )?(?:also )?(?:like|want|wish|prefer) (?:a|an|the|that|this|it)\b",
    rf"\b(?:happy|glad) to {_DO}\b",
)

# What only keeps the conversation going, or ends it.
CLOSING = _any(
    r"\b(?:please )?(?:do not|never) hesitate\b|\b(?:please )?feel free to (?:ask|reach|contact|let|message|write|call|get)\b",
    r"\b(?:please )?(?:just )?(?:let (?:me|us) know|if|should|is there|reach out|contact (?:me|us)|i am here)\b(?: \w+){0,9}? "
    r"(?:anything|something|any other|any further|any more|other questions?|further (?:assistance|help|questions?)|more help|"
    r"any questions?|any concerns?|any additional|additional (?:help|assistance)|more questions?)\b",
    r"\bhave an? (?:\w+ ){0,3}(?:day|evening|night|weekend|time|trip|one|week|afternoon|morning)\b",
    r"\bgood ?bye\b|\bbye\b|\btake care$|\byou are (?:very |most )?welcome\b(?! to)|\bmy pleasure\b|\benjoy your\b",
    r"\b(?:glad|happy|pleased) (?:that )?(?:i|we) (?:could|was able|were able)\b|\bit was (?:a pleasure|nice)\b",
    r"\bhope (?:this|that|it) helps\b|\b(?:please )?let me know if (?:this|that|it) (?:helps|works|resolves)\b",
    r"\bthank(?:s| you) for (?:choosing|banking|shopping|being|travelling|traveling|flying|staying)\b",
)
WAITING = _any(
    r"\b(?:one|a|another) (?:\w+ )?(?:moment|second|minute|sec)\b|\ba few (?:moments|minutes|seconds)\b",
    r"\bplease (?:wait|hold|bear|stand by|allow me|give me)\b|\bbear with me\b|(?:^|just |sure |okay )hold on\b|\bhang on\b|\bstand by\b",
    r"\blet (?:me|us)\b(?! know)|\ballow me\b|\bworking on (?:it|this|that)\b|\blooking into\b|\bin progress\b",
    r"\b(?:next|now|then) (?:i|we) (?:will|am|are|shall|need)\b",
    r"\b(?:i|we) (?:am|are) (?:going|about) to\b|\b(?:i|we) (?:am|are) (?:now |currently |just )?(?!hop|look)\w{3,}ing\b",
    r"\b(?:i|we) (?:will|shall) (?:(?:now|next|then|also|first|go ahead and|immediately|just) )*"
    rf"(?:(?!send|give|forward){_DO}|proceed|check|look|investigate|verify|go ahead|begin|continue|need)\b",
)
