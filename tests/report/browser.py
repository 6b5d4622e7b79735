"""Drives a headless Chromium through its debugging pipe, without any other package. Browser() starts the
one that find() finds."""
import json
import os
import shutil
import subprocess
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """The path of a browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class NoBrowser(Exception):
    """The browser does not start on this machine; the text has what it said."""


class Browser:
    """One page of one browser. `events` has what the page did since it was opened: requests, exceptions, messages."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.out = os.pipe()
        self.input, from_browser = os.pipe()
        # Chromium reads descriptor 3 and writes 4. It reserves terabytes of addresses.
        place = f'ulimit -S -v "$(ulimit -H -v)"; exec 3<&{to_browser} 4>&{from_browser}; exec "$@"'
        self.errors = open(os.path.join(self.folder.name, "errors"), "w+")
        self.process = subprocess.Popen(
            ["bash", "-c", place, "bash", find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-background-networking", "--disable-breakpad", "--no-zygote",
             "--disable-crash-reporter", "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}/profile",
             "about:blank"],
            pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=self.errors, env={**os.environ, "HOME": self.folder.name, "XDG_CONFIG_HOME": self.folder.name,
                                     "XDG_CACHE_HOME": self.folder.name})
        os.close(to_browser)
        os.close(from_browser)
        self.rest, self.last, self.session, self.events = b"", 0, None, []
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.call(f"{domain}.enable")
        except (OSError, EOFError) as reason:
            self.close()
            raise NoBrowser(f"{reason}, status {self.process.returncode}: {self.said}") from None

    def close(self):
        os.close(self.out)
        self.process.terminate()
        self.process.wait()
        os.close(self.input)
        self.errors.seek(0)
        self.said = self.errors.read()[-2000:]
        self.errors.close()
        self.folder.cleanup()

    def read(self):
        while b"\0" not in self.rest:
            data = os.read(self.input, 1 << 20)
            if not data:
                raise EOFError("the browser has ended")
            self.rest += data
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path, width=1280, height=900, **media):
        """Load a file; media features such as prefers_color_scheme="dark"."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media.pop("media", ""), features=[
            {"name": name.replace("_", "-"), "value": value} for name, value in media.items()])
        self.call("Page.navigate", url="about:blank")
        self.events.clear()
        self.call("Page.navigate", url=f"file://{path}" if path.startswith("/") else path)
        self.evaluate("new Promise(done => "
                      "document.readyState === 'complete' ? done() : addEventListener('load', done))")

    def evaluate(self, expression):
        """The value of an expression in the page; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "exception"))
        return result["result"].get("value")

    def settle(self):
        """Wait until the page has drawn what was asked of it."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def press(self, key, code):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)
        if key == "Enter":
            self.call("Input.dispatchKeyEvent", type="char", text="\r")

    def screenshot(self, **clip):
        """A PNG, in base64."""
        return self.call("Page.captureScreenshot", format="png", **clip)["data"]

    def requests(self):
        """Addresses that the page asked for, other than itself."""
        found = [event["params"]["request"]["url"] for event in self.events
                 if event.get("method") == "Network.requestWillBeSent"]
        return [url for url in found[1:] if not url.startswith("data:")]

    def complaints(self):
        """What the console got, and exceptions."""
        return [event["params"] for event in self.events
                if event.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")]
