# filled in once there is something to install
