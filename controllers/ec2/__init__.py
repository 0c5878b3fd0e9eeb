"""EC2's status of machines as conditions of their Kubernetes nodes, and reboots and replacements of machines through EC2.

A program of its own: nothing else of ours has the rights of an AWS role, or takes the memory of boto3.
"""
