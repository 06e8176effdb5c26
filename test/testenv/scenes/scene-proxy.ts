/**
 * A proxy in front of a real API server, to which all clients of a scene connect. It shows them the time of the scene, and
 * knows when all of them have got what others have written.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { performance } from 'node:perf_hooks';
import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { jsonLines } from '../../../src/kube/transport/json-lines.ts';
import type { Clock } from '../../../src/util/clock.ts';
import type { ControlPlane } from '../../../tools/controlplane/control-plane.ts';
import { readClientCertificate } from './client-certificate.ts';
import { OpenWatch, PendingEvents } from './pending-events.ts';
import { type Answer, VirtualTimes } from './virtual-times.ts';

/** The turns of the event loop in which a client that has something to do begins a request. */
const TURNS = 10;
/** The milliseconds without an event after which the watches with selectors have delivered everything, too. */
const QUIET_MS = 3;
const MOST_EVENT_BYTES = 16 * 1024 * 1024;

export class SceneProxy {
  readonly #upstream: string;
  readonly #agent: Agent;
  readonly #times: VirtualTimes;
  readonly #events = new PendingEvents();
  readonly #server = createServer((asked, answer) => this.#forward(asked, answer));
  /** The requests, other than watches, that are not answered yet. */
  #open = 0;
  /** When a request or an event has passed last. */
  #passed = 0;

  private constructor(upstream: string, agent: Agent, clock: Clock) {
    this.#upstream = upstream;
    this.#agent = agent;
    this.#times = new VirtualTimes(clock);
  }

  /** Starts the proxy. Its clients have the rights of the administrator. */
  static async start(plane: ControlPlane, clock: Clock): Promise<SceneProxy> {
    const credentials = await readClientCertificate(await plane.kubeconfig('admin'));
    const agent = new Agent({ ...credentials, keepAlive: true });
    const proxy = new SceneProxy(plane.url, agent, clock);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  /** Resolves when no client has anything more to do before the time moves on. */
  async settled(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn++) {
      await nextTurn();
      if (this.#isQuiet) continue;
      await pause(1);
      turn = 0;
    }
  }

  /** Resolves when the watches have delivered what was written until now. */
  async delivered(): Promise<void> {
    while (!this.#events.isEmpty) await pause(1);
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  get #isQuiet(): boolean {
    const quiet = performance.now() - this.#passed;
    return this.#open === 0 && quiet >= QUIET_MS && this.#events.isEmpty;
  }

  #forward(asked: IncomingMessage, answer: ServerResponse): void {
    const { method = 'GET' } = asked;
    const url = new URL(asked.url ?? '/', this.#upstream);
    const { host: _host, connection: _connection, ...headers } = asked.headers;
    const end = this.#begin();
    const sent = request(url, { agent: this.#agent, method, headers });
    sent.on('response', (got) => {
      const isWatch = url.searchParams.get('watch') === 'true' && got.statusCode === 200;
      const passing = isWatch
        ? this.#passEvents(url, got, answer, end)
        : this.#passAnswer(url, method, got, answer);
      passing.catch(() => answer.destroy()).finally(end);
    });
    sent.on('error', () => {
      answer.destroy();
      end();
    });
    answer.on('close', () => sent.destroy());
    asked.pipe(sent);
  }

  /** Counts a request, until the returned function is called for the first time. */
  #begin(): () => void {
    this.#open += 1;
    let isOpen = true;
    return () => {
      this.#passed = performance.now();
      if (isOpen) this.#open -= 1;
      isOpen = false;
    };
  }

  async #passAnswer(url: URL, method: string, got: IncomingMessage, answer: ServerResponse) {
    const { statusCode = 502 } = got;
    const { 'content-length': _length, ...headers } = got.headers;
    const body = await text(got);
    const isJson = headers['content-type']?.startsWith('application/json') === true;
    const parsed = isJson ? (JSON.parse(body) as Answer) : undefined;
    if (parsed && statusCode < 300) {
      this.#times.translate(parsed);
      if (method !== 'GET' && !url.searchParams.has('dryRun'))
        this.#events.expect(url.pathname, method, parsed);
    }
    answer.writeHead(statusCode, headers);
    answer.end(parsed ? JSON.stringify(parsed) : body);
  }

  async #passEvents(url: URL, got: IncomingMessage, answer: ServerResponse, end: () => void) {
    const watch = new OpenWatch(url);
    this.#events.watches.add(watch);
    answer.writeHead(200, got.headers);
    answer.flushHeaders();
    end();
    try {
      for await (const value of jsonLines(got, MOST_EVENT_BYTES)) {
        const event = value as Answer;
        this.#times.translate(event);
        watch.note(event);
        answer.write(`${JSON.stringify(event)}\n`);
        this.#passed = performance.now();
      }
      answer.end();
    } finally {
      this.#events.watches.delete(watch);
    }
  }
}
