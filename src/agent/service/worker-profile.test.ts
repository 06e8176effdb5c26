/**
 * Tests whether the agent finds out if k0s runs its own autopilot. The status answers and worker profiles were recorded
 * from a real k0s.
 */
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { recordedBeside } from '../../../test/support/recordings.ts';
import { isRecord } from '../../util/json.ts';
import { readServiceArguments } from './find-services.ts';
import type { TrustedAnswer } from './trusted-service.ts';
import { type OwnAgentFacts, ownAgentOf } from './worker-profile.ts';

let directory: string;
let count = 0;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-profile-'));
  await writeFile(join(directory, 'status.sock'), '');
});
afterEach(async () => await rm(directory, { recursive: true }));

type Switch = 'on' | 'off';

/**
 * Returns what the agent reads from the recorded answer of a worker. Each call uses a process that the agent does not
 * know yet.
 */
function answerOf(own: Switch, version?: string): TrustedAnswer {
  const status = recordedBeside(`status-w1-autopilot-${own}`);
  if (!isRecord(status)) throw new Error('the recorded status is no object');
  const args = readServiceArguments(status['Args'] as string[]);
  const pid = status['Pid'] as number;
  return {
    version: version ?? (status['Version'] as string),
    pid,
    process: { pid, started: `boot/${++count}`, parent: 1 },
    profile: args?.profile ?? 'default',
  };
}

/** Writes the recorded profile `v1`, with this change, in the form in which k0s stores it. */
async function store(own: Switch, change: Record<string, string> = {}, name = 'v1') {
  const profiles = recordedBeside(`worker-config-autopilot-${own}`) as {
    metadata: { name: string };
    data: Record<string, string>;
  }[];
  const data = profiles.find(({ metadata }) => metadata.name === 'worker-config-v1-1.36')?.data;
  const text = stringify({ name, data: { ...data, ...change } });
  await writeFile(join(directory, 'worker-profile.yaml'), text);
}

const ask = async (answer: TrustedAnswer, record?: string): Promise<OwnAgentFacts> =>
  await ownAgentOf(
    answer,
    {
      statusSocket: join(directory, 'status.sock'),
      dataDirectory: directory,
    },
    record,
  );

const doubt = (words: string): OwnAgentFacts => ({
  ownAgentDoubt: expect.stringContaining(words) as string,
});

test.each<[Switch, boolean]>([
  ['on', true],
  ['off', false],
])('whether a worker runs the own agent of k0s, by its profile: %s', async (own, ownAgent) => {
  await store(own);
  expect(await ask(answerOf(own))).toEqual({ ownAgent });
});

test('a worker from before the switch runs it, whatever its profile says', async () => {
  await store('off');
  expect(await ask(answerOf('off', 'v1.35.0+k0s.0'))).toEqual({ ownAgent: true });
  expect(await ask(answerOf('off', 'v1.35.1+k0s.0'))).toEqual({ ownAgent: false });
});

test('a worker without the file, or with one that it did not start with, leaves a doubt', async () => {
  expect(await ask(answerOf('off'))).toEqual(doubt('worker-profile.yaml'));
  await store('off', {}, 'another');
  expect(await ask(answerOf('off'))).toEqual(doubt('another profile than "v1"'));
  await writeFile(join(directory, 'worker-profile.yaml'), '- no profile');
  expect(await ask(answerOf('off'))).toEqual(doubt('holds no worker profile'));
});

test('a profile that is longer than any that k0s writes leaves a doubt', async () => {
  await store('off', { kubeletConfiguration: '\t: \n'.repeat(20_000) });
  expect(await ask(answerOf('off'))).toEqual(doubt('at most 65536 are read'));
});

test('with load balancing k0s writes each change of the profile: only the first look at a process counts', async () => {
  const balanced = { nodeLocalLoadBalancing: '{"enabled":true}' };
  const answer = answerOf('on');
  await store('on', balanced);
  expect(await ask(answer)).toEqual({ ownAgent: true });
  await store('off', balanced);
  const file = join(directory, 'worker-profile.yaml');
  const later = Date.now() / 1_000 + 30;
  await utimes(file, later, later);
  expect(await ask(answer)).toEqual({ ownAgent: true });
  expect(await ask(answerOf('on'))).toEqual(doubt(`${file} has changed since k0s was started`));
});

test('a controller says it on its command line, another service has none', async () => {
  const { profile: _, ...other } = answerOf('on');
  expect(await ask({ ...other, ownAgent: true })).toEqual({ ownAgent: true });
  expect(await ask(other)).toEqual({});
});

test.each<[string, boolean]>([
  ['status-c1-autopilot-on', true],
  ['status-c1-autopilot-off', false],
])('the recorded command line of a controller, %s', (name, isOn) => {
  const { Args } = recordedBeside(name) as { Args: string[] };
  expect(readServiceArguments(Args)?.disabled?.includes('autopilot')).toBe(!isOn);
});

test('an agent that starts anew still knows what it found out about a process that runs since', async () => {
  const balanced = { nodeLocalLoadBalancing: '{"enabled":true}' };
  const answer = answerOf('on');
  const record = join(directory, 'own-agent.json');
  await store('on', balanced);
  expect(await ask(answer, record)).toEqual({ ownAgent: true });
  await store('off', balanced);
  const later = Date.now() / 1_000 + 30;
  await utimes(join(directory, 'worker-profile.yaml'), later, later);
  // In between, the agent asks about another process, so that it no longer remembers the answer for the first process.
  const other = answerOf('on');
  expect(await ask(other)).toEqual(doubt('has changed since k0s was started'));
  expect(await ask(answer)).toEqual(doubt('has changed since k0s was started'));
  expect(await ask(answer, record)).toEqual({ ownAgent: true });
  expect(await ask(other, record)).toEqual(doubt('has changed since k0s was started'));
  expect(await ask(other)).toEqual(doubt('has changed since k0s was started'));
  await writeFile(record, 'damaged');
  expect(await ask(answer, record)).toEqual(doubt('has changed since k0s was started'));
});
