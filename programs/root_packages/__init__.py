"""The Job that installs packages in a version of the shared root."""
