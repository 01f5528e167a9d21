"""Both ends under measurement: in virtual time, or in real time over an emulated link."""
