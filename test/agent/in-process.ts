/** An agent in this process, on a stand-in host with a service of its own, without an API server. */
import * as files from 'node:fs/promises';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { type DownloadServer, startDownloadServer } from '../../sandbox/hosts/download-server.ts';
import { type Host, startHost } from '../../sandbox/hosts/host.ts';
import { type Broken, buildStandIn } from '../../sandbox/hosts/stand-in.ts';
import { Agent, type AgentParts } from '../../src/agent/agent.ts';
import type { SignalObject } from '../../src/agent/object/signal-object.ts';
import { type EffectTools, perform } from '../../src/agent/perform-step.ts';
import { observeHost, searchService } from '../../src/agent/service/observe-host.ts';
import { ageOf, endProcess } from '../../src/agent/service/processes.ts';
import { loadJournal, saveJournal } from '../../src/agent/state/journal-file.ts';
import { pathsIn } from '../../src/agent/state/state-directory.ts';
import { fileTrust } from '../../src/agent/state/trusted-path.ts';
import type { Times } from '../../src/agent/step-input.ts';
import {
  type AgentReport,
  decodeReport,
  type SignalCommand,
} from '../../src/signal/annotations.ts';
import { ROLLOUT_ANNOTATION } from '../../src/signal/names.ts';
import { type Clock, systemClock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/log.ts';
import { Fuse } from './fuse.ts';
import { MemoryStore, viewOf } from './memory-object.ts';
import { OwnNode } from './own-node.ts';

export const OLD = 'v1.36.3+k0s.0';
export const NEW = 'v1.36.3+k0s.2';
const LIMITS = { maxBytes: 1_000_000, reserveBytes: 0, totalMs: 60_000, stallMs: 60_000 };
/** The soak is longer than the time after which a `…-later` build breaks. */
const TIMES: Times = { restartTimeoutMs: 20_000, soakMs: 300, readyTimeoutMs: 20_000 };
const BUILDS: Readonly<Record<string, Broken | undefined>> = {
  '/good': undefined,
  '/wrong': 'wrong-version',
  '/crashes-later': 'crashes-later',
  '/hangs-later': 'hangs-later',
};

/** Builds of the new version, good and bad, behind a download server. */
export class Builds implements AsyncDisposable {
  readonly directory: string;
  readonly server: DownloadServer;

  private constructor(directory: string, server: DownloadServer) {
    this.directory = directory;
    this.server = server;
  }

  static async start(): Promise<Builds> {
    const directory = await mkdtemp(join(tmpdir(), 'refit-in-process-'));
    const paths: Record<string, string> = {};
    for (const [path, broken] of Object.entries(BUILDS)) {
      paths[path] = join(directory, path);
      await buildStandIn({ version: NEW, path: paths[path], ...(broken && { broken }) });
    }
    await buildStandIn({ version: OLD, path: join(directory, 'old') });
    const served = {
      ...paths,
      '/old': join(directory, 'old'),
      '/slow': join(directory, 'good'),
      '/bundle.tar': join(directory, 'good'),
    };
    const faults = [{ path: '/slow', paceMs: 200, times: Infinity }];
    return new Builds(directory, await startDownloadServer({ files: served, faults }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.stop();
    await rm(this.directory, { recursive: true });
  }
}

/** The parts that remain when an agent ends: the host, the object and the node. */
export class Place implements AsyncDisposable {
  readonly store = new MemoryStore();
  readonly node = new OwnNode();
  readonly host: Host;
  readonly #builds: Builds;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];

  private constructor(host: Host, builds: Builds) {
    this.host = host;
    this.#builds = builds;
    this.node.read = () => this.store.object;
  }

  static async start(name: string, builds: Builds): Promise<Place> {
    const directory = join(builds.directory, name);
    return new Place(
      await startHost({ name, role: 'worker', directory, version: OLD, restartDelayMs: 1 }),
      builds,
    );
  }

  get images(): string {
    return join(this.host.dataDirectory, 'images');
  }

  async journal(): Promise<string> {
    return await readFile(pathsIn(this.host.stateDirectory).journal, 'utf8').catch(() => '"idle"');
  }

  get report(): AgentReport | undefined {
    return decodeReport(this.store.object.metadata.annotations, 'c');
  }

  /** Sends a signal for one of the builds. */
  send(path: string, more: Partial<SignalCommand> = {}): void {
    const { server } = this.#builds;
    const version = path === '/old' ? OLD : NEW;
    const command = {
      id: 0,
      kind: 'k0supdate',
      url: server.url + path,
      version,
      sha256: server.sha256(path),
    } as const;
    this.store.send(
      { planId: 'p', created: 'c', command: { ...command, ...more } },
      { [ROLLOUT_ANNOTATION]: 'plan/c' },
    );
  }

  /** Runs an agent until the fuse ends it, or until the place is disposed. */
  startAgent(fuse = new Fuse(Infinity), more: Partial<AgentParts> = {}): void {
    this.#running.push(
      agentOn(this, fuse, more).run(AbortSignal.any([fuse.dead.signal, this.#stop.signal])),
    );
  }

  /** Resolves once the work has ended and the agent has cleaned up. */
  async ended(): Promise<void> {
    await this.until(async () => {
      expect(this.store.statuses.at(-1)).toMatch(/^(Completed|Failed|FailedDownload)$/);
      expect(await loadJournal(pathsIn(this.host.stateDirectory).journal)).toEqual({
        phase: 'idle',
      });
    });
  }

  async until(condition: () => void | Promise<void>): Promise<void> {
    await vi.waitFor(condition, { timeout: 150_000, interval: 20 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.host.stop();
  }
}

/**
 * Returns an agent. Every change of the host, the node or the object is an effect before which the fuse may end the
 * agent.
 */
function agentOn(
  { host, store, node, images }: Place,
  fuse: Fuse,
  more: Partial<AgentParts>,
): Agent {
  const { stateDirectory, statusSocket, binary } = host;
  const { journal } = pathsIn(stateDirectory);
  const maintenance = node.maintenanceUntil(fuse);
  const clock: Clock = more.clock ?? systemClock;
  const tools = { clock, random: Math.random, log: silentLogger };
  const current = { statusSocket, dataDirectory: host.dataDirectory };
  const places = { current, search: async () => await Promise.resolve(current) };
  const effects: EffectTools = {
    ...tools,
    files,
    fileTrust,
    tried: new Map(),
    maintenance,
    restarter: {
      restart(target) {
        node.wasTouchedUncordoned ||= !node.isCordoned;
        return Promise.resolve(endProcess(target, 'SIGTERM'));
      },
    },
    stateDirectory,
    imagesDirectory: images,
    places,
    userAgent: `refit-agent/0 (${host.name})`,
    limits: LIMITS,
    environment: {},
  };
  const view = viewOf(store);
  const object: SignalObject = Object.create(view, {
    write: {
      value: async (written: never) => await fuse.before(async () => await view.write(written)),
    },
  }) as SignalObject;
  return new Agent({
    ...tools,
    object,
    maintenance,
    loadJournal: async () => await loadJournal(journal),
    saveJournal: async (next) => await fuse.before(async () => await saveJournal(journal, next)),
    observe: async (known) => await observeHost({ places, binary }, known),
    searchService,
    ageOf,
    perform: async (step, known, abort) =>
      await fuse.before(async () => await perform(step, known, effects, abort)),
    times: TIMES,
    accepts: ['k0supdate', 'airgapupdate'],
    ...more,
  });
}
