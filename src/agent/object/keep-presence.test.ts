/**
 * Tests that an agent announces itself on its own object. It writes the announcement once, writes it again if somebody
 * removed it, and retries until a write succeeds.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { ChangingNode } from '../../../test/support/doubles/agent/changing-node.ts';
import { nodes } from '../../kube/resources.ts';
import type { AgentPresence, KeptAnnouncement, KeptFacts } from '../../signal/agent-presence.ts';
import { AGENT_ANNOTATION, HEARTBEAT_ANNOTATION, MACHINE_ANNOTATION } from '../../signal/names.ts';
import { rfc3339 } from '../../util/clock.ts';
import { parseJson } from '../../util/json.ts';
import { silentLogger } from '../../util/log.ts';
import { type PresenceKeeper, type PresenceParts, presenceKeeper } from './keep-presence.ts';
import type { SignalObject } from './signal-object.ts';

/** A Node that also changes when the agent patches it. */
class Cell extends ChangingNode {
  patches = 0;
  fails = false;

  set(annotations: Record<string, string>): void {
    this.show({ metadata: { name: 'n', annotations } });
  }

  async patch(
    _resource: unknown,
    name: string,
    { metadata }: { metadata: { annotations: Record<string, string> } },
  ) {
    this.patches++;
    if (this.fails) throw new Error('no answer');
    expect(name).toBe('n');
    this.set({ ...this.newest?.metadata.annotations, ...metadata.annotations });
    return await Promise.resolve(this.newest);
  }

  get said(): unknown {
    return parseJson(this.newest?.metadata.annotations?.[AGENT_ANNOTATION]);
  }
}

const SELF: AgentPresence = { version: '1.2.3', since: '2026-11-20T08:00:00Z' };

let clock: FakeClock;
let cell: Cell;
let presence: AgentPresence;
/** If set, it is used instead of `presence`. */
let slowPresence: (() => Promise<AgentPresence>) | undefined;
let stop: AbortController;
let done: Promise<void>;
let room: number | undefined;
let kept: () => Promise<KeptAnnouncement>;
let keeper: PresenceKeeper;
beforeEach(() => {
  clock = new FakeClock();
  cell = new Cell();
  stop = new AbortController();
  presence = SELF;
  slowPresence = undefined;
  room = 1000;
  kept = async () => await Promise.resolve({});
  const object = cell as unknown as SignalObject;
  const parts = { resource: nodes, object, clock, random: () => 0.5, log: silentLogger };
  const client = cell as unknown as PresenceParts['client'];
  const said = {
    presence: async () => (await slowPresence?.()) ?? presence,
    room: async () => await Promise.resolve(room),
    kept: async () => await kept(),
  };
  keeper = presenceKeeper({ ...parts, client, ...said });
  done = keeper.keep(stop.signal);
});
afterEach(async () => {
  stop.abort();
  await done;
  expect(clock.pending).toBe(0);
});

test('nothing is written before the object is there, then once, and again only when it is gone', async () => {
  await clock.advance(120_000);
  expect(cell.patches).toBe(0);
  cell.set({ other: 'kept' });
  await clock.advance(600_000);
  expect([cell.patches, cell.said]).toEqual([1, SELF]);
  expect(cell.newest?.metadata.annotations).toHaveProperty('other', 'kept');
  cell.set({});
  await clock.advance(1000);
  expect([cell.patches, cell.said]).toEqual([2, SELF]);
});

test('k0s was started with its own agent: said within a minute, and no more once it is off', async () => {
  cell.set({});
  await clock.advance(1000);
  presence = { ...SELF, aside: true };
  await clock.advance(60_000);
  expect(cell.said).toEqual({ ...SELF, aside: true });
  presence = SELF;
  await clock.advance(60_000);
  expect(cell.said).toEqual(SELF);
});

test('an API server that does not answer is asked again after growing pauses', async () => {
  cell.fails = true;
  cell.set({});
  await clock.advance(3_600_000);
  expect(cell.patches).toBeGreaterThan(5);
  expect(cell.patches).toBeLessThan(20);
  cell.fails = false;
  await clock.advance(600_000);
  expect(cell.said).toEqual(SELF);
});

test('on the Node of a Machine it says every five minutes that it lives, with the room that it has then', async () => {
  const beat = (): unknown => parseJson(cell.newest?.metadata.annotations?.[HEARTBEAT_ANNOTATION]);
  const start = clock.now();
  const at = (ms: number): string => rfc3339(start + ms);
  const { since } = SELF;
  cell.set({});
  await clock.advance(600_000);
  expect([cell.patches, beat()]).toEqual([1, undefined]);
  cell.set({ ...cell.newest?.metadata.annotations, [MACHINE_ANNOTATION]: 'm1' });
  await clock.advance(1000);
  expect([cell.patches, beat()]).toEqual([2, { at: at(600_000), room: 1000, since }]);
  room = 7;
  await clock.advance(240_000);
  expect(cell.patches).toBe(2);
  await clock.advance(120_000);
  expect([cell.patches, beat()]).toEqual([3, { at: at(900_000), room: 7, since }]);
  room = undefined;
  await clock.advance(3_600_000);
  expect([cell.patches, beat()]).toEqual([15, { at: at(4_500_000), since }]);
});

test('an agent whose host holds plans back says every five minutes that it lives', async () => {
  presence = { ...SELF, cgroupV1: 'refused' };
  cell.set({});
  await clock.advance(1000);
  expect(cell.newest?.metadata.annotations).toHaveProperty(HEARTBEAT_ANNOTATION);
  const { patches } = cell;
  await clock.advance(300_000);
  expect(cell.patches).toBe(patches + 1);
});

const KEPT: KeptFacts = { version: 'v1.36.2+k0s.0', sha256: 'a'.repeat(64) };

test('a report contains what was announced last, with the binary that is kept now', async () => {
  kept = async () => await Promise.resolve({ kept: KEPT });
  expect(await keeper.current(), 'nothing was announced yet').toEqual({});
  cell.set({});
  await clock.advance(1000);
  const { [AGENT_ANNOTATION]: text } = await keeper.current();
  expect(parseJson(text)).toEqual({ ...SELF, kept: KEPT });
  // When the report is written, the next poll has nothing to write.
  presence = { ...SELF, kept: KEPT };
  cell.set({ [AGENT_ANNOTATION]: text ?? '' });
  await clock.advance(120_000);
  expect(cell.patches).toBe(1);
});

test('an agent that stands aside, or serves kubeadm, announces no kept binary in its report', async () => {
  kept = async () => await Promise.resolve({ kept: KEPT });
  for (const other of [{ aside: true }, { procedure: 'kubeadm' }] as const) {
    presence = { ...SELF, ...other };
    cell.set({});
    await clock.advance(1000);
    const { [AGENT_ANNOTATION]: text } = await keeper.current();
    expect(parseJson(text)).toEqual(presence);
  }
});

test('a report does not announce a kept binary or bundle that is no longer known', async () => {
  presence = { ...SELF, kept: KEPT, keptBundle: { version: 'v1.36.2+k0s.0' } };
  cell.set({});
  await clock.advance(1000);
  kept = async () => await Promise.resolve({ kept: KEPT });
  expect(parseJson((await keeper.current())[AGENT_ANNOTATION])).toEqual({ ...SELF, kept: KEPT });
  kept = async () => await Promise.resolve({});
  expect(parseJson((await keeper.current())[AGENT_ANNOTATION])).toEqual(SELF);
});

test('a kept binary that cannot be read leaves the announcement as it is', async () => {
  presence = { ...SELF, kept: KEPT };
  kept = async () => await Promise.reject(new Error('the disk is gone'));
  cell.set({});
  await clock.advance(1000);
  expect(await keeper.current()).toEqual({});
});

test.each(['before', 'during'])(
  'an announcement that began %s the one of a report does not overwrite it',
  async (began) => {
    cell.set({});
    await clock.advance(1000);
    const facts = Promise.withResolvers<KeptAnnouncement>();
    kept = async () => await facts.promise;
    const gathered = Promise.withResolvers<AgentPresence>();
    const asked = Promise.withResolvers<void>();
    slowPresence = async () => {
      asked.resolve();
      return await gathered.promise;
    };
    const { patches } = cell;
    let report: Promise<Readonly<Record<string, string>>> | undefined;
    if (began === 'during') report = keeper.current();
    cell.set({ other: 'changed' });
    await asked.promise;
    report ??= keeper.current();
    facts.resolve({ kept: KEPT });
    cell.set({ other: 'changed', ...(await report) });
    slowPresence = undefined;
    gathered.resolve(SELF);
    presence = { ...SELF, kept: KEPT };
    await clock.advance(120_000);
    expect([cell.patches, cell.said]).toEqual([patches, presence]);
  },
);
