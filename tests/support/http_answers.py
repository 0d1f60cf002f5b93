"""What the HTTP servers of the tests answer by."""
from http.server import BaseHTTPRequestHandler


class HttpAnswers(BaseHTTPRequestHandler):
    """Keeps connections alive, logs nothing."""
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def answer(self, status, body=b'', headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
