"""Which devices train, which receive whose model, with what weight.

>>> import stlf
>>> stlf.__version__.count(".")
2
"""

from stlf._internal import __version__

__all__ = ["__version__"]
