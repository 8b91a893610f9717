"""Put in front of PYTHONPATH by `joulediff record`: arms the plug-ins in every Python process."""

import joulediff_inject

try:
    joulediff_inject.hand_on("sitecustomize")
finally:
    joulediff_inject.arm()
