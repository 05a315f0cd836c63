// A page opened from a file may start no Worker, and the site's search is one: there it runs in a hidden frame.
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inner = this.frame.contentWindow
      inner.document.open()
      inner.document.write("<!doctype html><body></body>")
      inner.document.close()
      inner.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      inner.importScripts = async (...urls) => {
        for (const next of urls) await this.load(next)
      }
      this.loaded = this.load(url)
    }

    load(url) {
      return new Promise((done, failed) => {
        const script = this.frame.contentDocument.createElement("script")
        Object.assign(script, { src: url, onload: done, onerror: failed })
        this.frame.contentDocument.body.append(script)
      })
    }

    postMessage(data) {
      const inner = this.frame.contentWindow
      const message = new MessageEvent("message", { data: structuredClone(data) })
      this.loaded.then(() => inner.dispatchEvent(message))
    }

    terminate() {
      this.frame.remove()
    }
  }
  window.Worker = window.IFrameWorker = IFrameWorker
}
