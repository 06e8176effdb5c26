/** Owns the proof that an agent may die before any of its effects: the next one ends the work, with nothing done twice. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import * as files from 'node:fs/promises';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Agent, type AgentParts } from '../../src/agent/agent.ts';
import type { Duties } from '../../src/agent/duties.ts';
import { type EffectTools, perform } from '../../src/agent/effects.ts';
import { loadJournal, saveJournal } from '../../src/agent/journal-file.ts';
import { observeHost } from '../../src/agent/observe-host.ts';
import { pathsIn } from '../../src/agent/paths.ts';
import { endProcess } from '../../src/agent/processes.ts';
import type { SignalObject } from '../../src/agent/signal-object.ts';
import { type DownloadServer, startDownloadServer } from '../../src/embedded/hosts/download-server.ts';
import { type Host, startHost } from '../../src/embedded/hosts/host.ts';
import { buildStandIn } from '../../src/embedded/hosts/stand-in.ts';
import { SIGNAL_STATUSES } from '../../src/signal/names.ts';
import { decodeReport } from '../../src/signal/report.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/log.ts';
import { MemoryStore, viewOf } from './memory-object.ts';

const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.36.3+k0s.2';
const tools = { clock: systemClock, random: Math.random, log: silentLogger };
const limits = { maxBytes: 1_000_000, totalMs: 60_000, stallMs: 60_000 };

let directory: string;
let server: DownloadServer;
const open: Host[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-crash-'));
  const [good, wrong] = [join(directory, 'good'), join(directory, 'wrong')];
  await buildStandIn({ version: OLD, path: join(directory, 'old') });
  await buildStandIn({ version: NEW, path: good });
  await buildStandIn({ version: NEW, path: wrong, broken: 'wrong-version' });
  server = await startDownloadServer({ files: { '/good': good, '/wrong': wrong } });
});
afterAll(async () => {
  for (const host of open) await host.stop();
  await server.stop();
  await rm(directory, { recursive: true });
});

/** Counts effects, and is the end of its agent before one of them. */
class Fuse {
  readonly dead = new AbortController();
  effects = 0;
  readonly #at: number;

  constructor(at: number) {
    this.#at = at;
  }

  /** A promise that never settles, from the chosen effect on: what a killed process would have done next is not done. */
  async before<T>(effect: () => Promise<T>): Promise<T> {
    if (this.effects++ >= this.#at) {
      this.dead.abort();
      return await new Promise<T>(() => undefined);
    }
    return await effect();
  }
}

const duties: Duties = {
  whoCordons: async () => await Promise.resolve('self'),
  hasCordon: async () => await Promise.resolve(false),
  makeWay: async () => await Promise.resolve(),
  takeBack: async () => await Promise.resolve(),
};

function agentOn(host: Host, store: MemoryStore, fuse: Fuse): Agent {
  const { stateDirectory, statusSocket, binary } = host;
  const { journal } = pathsIn(stateDirectory);
  const effects: EffectTools = {
    ...tools,
    files,
    duties,
    restarter: { restart: async (target) => await endProcess(target, 'SIGTERM') },
    stateDirectory,
    imagesDirectory: join(host.directory, 'images'),
    userAgent: `refit-agent/0 (${host.name})`,
    limits,
  };
  const view = viewOf(store);
  const object: SignalObject = Object.create(view, {
    write: { value: async (written: never) => await fuse.before(async () => await view.write(written)) },
  }) as SignalObject;
  const parts: AgentParts = {
    ...tools,
    object,
    loadJournal: async () => await loadJournal(journal),
    saveJournal: async (next) => await fuse.before(async () => await saveJournal(journal, next)),
    observe: async (current) => await observeHost({ statusSocket, binary }, current),
    perform: async (step, current, signal) =>
      await fuse.before(async () => await perform(step, current, effects, signal)),
    duties,
    times: { restartTimeoutMs: 20_000, soakMs: 0, readyTimeoutMs: 20_000 },
    accepts: ['k0supdate', 'airgapupdate'],
  };
  return new Agent(parts);
}

interface Run {
  readonly host: Host;
  readonly store: MemoryStore;
  /** Effects of the first agent. */
  readonly effects: number;
}

/** One update whose first agent dies before effect `at`, and whose second one brings it to its end. */
async function update(path: '/good' | '/wrong', at: number): Promise<Run> {
  const name = `${path.slice(1)}${at}`;
  const home = join(directory, name);
  const host = await startHost({ name, role: 'worker', directory: home, version: OLD, restartDelayMs: 1 });
  open.push(host);
  const store = new MemoryStore();
  const command = {
    id: 0,
    kind: 'k0supdate',
    url: server.url + path,
    version: NEW,
    sha256: server.sha256(path),
  } as const;
  store.send({ planId: 'p', created: 'c', command });
  const first = new Fuse(at);
  const done = new AbortController();
  void agentOn(host, store, first).run(AbortSignal.any([first.dead.signal, done.signal]));
  await Promise.race([ended(host, store), once(first.dead.signal, 'abort')]);
  expect([await sha256(join(directory, 'old')), server.sha256(path)]).toContain(await sha256(host.binary));
  const second = agentOn(host, store, new Fuse(Number.POSITIVE_INFINITY)).run(done.signal);
  await ended(host, store);
  done.abort();
  await second;
  return { host, store, effects: first.effects };
}

async function ended(host: Host, store: MemoryStore): Promise<void> {
  await vi.waitFor(
    async () => {
      expect(await loadJournal(pathsIn(host.stateDirectory).journal)).toEqual({ phase: 'idle' });
      expect(store.statuses.at(-1)).toMatch(/^(Completed|Failed)$/);
    },
    { timeout: 30_000, interval: 5 },
  );
}

async function sha256(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
}

const served = ({ host }: Run): unknown[] => server.requests.filter(({ node }) => node === host.name);
const reportIn = ({ store }: Run): unknown => decodeReport(store.object.metadata.annotations, 'c');

async function expectUpdated(run: Run): Promise<void> {
  const { host, store } = run;
  expect(store.statuses).toEqual([...SIGNAL_STATUSES]);
  expect(await host.version()).toBe(NEW);
  expect(host.starts).toBe(2);
  expect(await sha256(host.binary)).toBe(server.sha256('/good'));
  expect(served(run)).toMatchObject([{ complete: true }]);
}

async function expectRolledBack(run: Run): Promise<void> {
  const { host, store } = run;
  expect(store.statuses).toEqual(['Downloading', 'Cordoning', 'ApplyingUpdate', 'Restart', 'Failed']);
  expect(reportIn(run)).toMatchObject({ rolledBack: true, reason: expect.stringContaining(`${NEW}.wrong`) });
  expect(await host.version()).toBe(OLD);
  expect(host.starts).toBe(3);
  expect(await sha256(host.binary)).toBe(await sha256(join(directory, 'old')));
  expect(served(run)).toMatchObject([{ complete: true }]);
}

async function expectTidy({ host, store }: Run): Promise<void> {
  expect(store.object.metadata.annotations).toMatchObject({ theirs: 'kept' });
  expect((await readdir(join(host.directory, 'bin'))).toSorted()).toEqual(['k0s', 'k0s.previous']);
  expect(await sha256(`${host.binary}.previous`)).toBe(await sha256(join(directory, 'old')));
  expect(await readdir(host.stateDirectory)).toEqual(['journal.json']);
}

test.each([
  ['an update', '/good', expectUpdated],
  ['a roll-back', '/wrong', expectRolledBack],
] as const)('%s survives a crash before each of its effects', { timeout: 300_000 }, async (_name, path, expectEnd) => {
  const whole = await update(path, Number.POSITIVE_INFINITY);
  expect(whole.effects).toBeGreaterThan(20);
  for (let at = -1; at < whole.effects; at++) {
    const run = at < 0 ? whole : await update(path, at);
    try {
      await expectEnd(run);
      await expectTidy(run);
    } catch (error) {
      throw new Error(`killed before effect ${at} of ${whole.effects}`, { cause: error });
    }
    await run.host.stop();
  }
});
