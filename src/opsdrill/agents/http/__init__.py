"""Agents that are services: a job is posted, its events come back, commands run on the hosts here.

protocol  what is sent and what comes back, `opsdrill.agent/1`
client    requests to the service: bounded, tried again, signed
signing   what a signature is made of       callbacks  where a service may post its events
intake    events -> the recorder, and the commands that the service asks for
job       one job from its start to its end openapi    the protocol as an OpenAPI document
"""
