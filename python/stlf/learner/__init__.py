"""A class of your own as the learner of a device: it has the data and the model, stlf does the rest.

`python -m stlf.learner pumps:Pumps` runs the class `Pumps` of the module `pumps` as a program that speaks
stlf-learner/1; `stlf node start --learner "python -m stlf.learner pumps:Pumps"` has it learn for a device of a
fleet, and `stlf learner check "python -m stlf.learner pumps:Pumps"` tries it.
"""

from stlf.learner.contract import Adaptation, Learner, Lesson

__all__ = ["Adaptation", "Learner", "Lesson"]
