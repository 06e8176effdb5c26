/** Shows when an agent reads again what it announces about its kept binary. */
import { expect, test } from 'vitest';
import type { KeptFacts } from '../../signal/agent-presence.ts';
import { factsOfKept } from './kept-facts.ts';

const OLD: KeptFacts = { version: 'v1', sha256: 'a'.repeat(64) };
const NEW: KeptFacts = { version: 'v2', sha256: 'b'.repeat(64) };
const MINUTE = 60_000;

function rig() {
  const state = { facts: OLD, changes: 0, reads: 0, tended: 0, now: 0 };
  const clock = { monotonic: () => state.now };
  const kept = {
    changes: () => state.changes,
    tend: async () => {
      state.tended++;
      if (state.tended > 2) throw new Error('read-only file system');
    },
    facts: async () => {
      state.reads++;
      return state.facts;
    },
  };
  const warnings: string[] = [];
  const log = { warn: (message: string) => void warnings.push(message) };
  return { state, warnings, ask: factsOfKept({ kept, clock, log }) };
}

test('the host is read once a minute', async () => {
  const { state, ask } = rig();
  for (let calls = 0; calls < 3; calls++) expect(await ask()).toEqual(OLD);
  expect(state.reads).toBe(1);
  state.now += MINUTE;
  await ask();
  expect(state.reads).toBe(2);
});

test('after an upgrade the new binary is announced at once', async () => {
  const { state, ask } = rig();
  await ask();
  state.facts = NEW;
  expect(await ask()).toEqual(OLD);
  state.changes++;
  expect(await ask()).toEqual(NEW);
});

test('a binary that cannot be removed is a warning', async () => {
  const { state, warnings, ask } = rig();
  for (let minutes = 0; minutes < 3; minutes++) {
    await ask();
    state.now += MINUTE;
  }
  expect(warnings).toEqual(['cannot remove the kept binary']);
});

test('an agent that keeps nothing announces nothing', async () => {
  const log = { warn: () => undefined };
  expect(await factsOfKept({ clock: { monotonic: () => 0 }, log })()).toBeUndefined();
});
