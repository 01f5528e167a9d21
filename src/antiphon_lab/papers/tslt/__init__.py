"""`antiphon-lab reproduce tslt`."""
