"""The web pages: rendered on the server, over the same use cases as the API.

application  makes the site: the API, the pages, the static files, and errors as pages
rows         runs as tables show them
entry        who looks: a session's cookie, or the way to the log-in page
render       templates, what they may call, and the headers of every page
forms        what a browser's form sends
assets       the static files by address
pages/       one file a page
templates/   theirs; `parts/` holds what several share
static/      one style sheet, small scripts, and `vendor/` with its licences
"""
