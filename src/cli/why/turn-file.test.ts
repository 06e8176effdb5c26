/** Shows that a turn in a file contains no secrets, and that a replay names what differs from the release that wrote it. */

import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { MODULES } from '../../dialects/modules.ts';
import type { RolloutPolicy } from '../../engine/policy/rollout-policy.ts';
import { RefitError } from '../../util/errors.ts';
import type { SessionDialect } from '../contract/session-dialect.ts';
import { textsIn } from '../status/texts-of.ts';
import { replayTurn, writeTurn } from './turn-file.ts';

const SECRET = 'hunter2';
const LEADER = { state: 'none' } as const;

async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'refit-turn-'));
  onTestFinished(async () => await rm(path, { recursive: true }));
  return path;
}

async function written(
  more: Partial<RolloutPolicy> = {},
  modules: readonly SessionDialect[] = MODULES,
  changes: SnapshotChanges = {},
): Promise<string> {
  const path = join(await directory(), 'turn.json');
  const [{ name: dialect } = { name: '' }] = modules;
  const built = buildSnapshot(buildRollout([buildStage('worker', ['w1', 'w2'])]));
  const snapshot = withParts(built, changes);
  const plan = { dialect, snapshot, policy: buildPolicy(more), warnings: [], unseen: [] };
  const seen = { now: T0, leader: LEADER, plans: [{ ...plan, namespace: 'shop' }] };
  await writeTurn(path, seen, textsIn(modules));
  return path;
}

async function replayed(path: string): Promise<string> {
  const lines: string[] = [];
  const size = (): { columns: number; rows: number } => ({ columns: 80, rows: 24 });
  const write = (text: string): void => void lines.push(text);
  await replayTurn(path, { isTerminal: false, hasColours: false, size, write }, MODULES);
  return lines.join('');
}

test('a replay shows the status, the explanation and the commands, and that nothing differs', async () => {
  const text = await replayed(await written());
  expect(text).toContain('# status\n');
  expect(text).toContain('# why\n');
  expect(text).toContain('# commands of a leader\n');
  expect(text).toMatch(/said and decided the same\.\n$/);
});

test('the file contains no address of a receiver, no path of a URL and no pod of a hook, and only its owner may read it', async () => {
  const job = { spec: { containers: [{ env: [{ name: 'TOKEN', value: SECRET }] }] } };
  const path = await written({
    notify: [
      {
        name: 'chat',
        type: 'Slack',
        events: [],
        address: { url: `https://example.com/${SECRET}` },
      },
    ],
    hooks: [
      {
        name: 'backup',
        when: 'beforePlan',
        timeoutMs: 1,
        action: { kind: 'job', namespace: 'a', template: job, pinToNode: false, retries: 0 },
      },
      {
        name: 'tell',
        when: 'afterPlan',
        timeoutMs: 1,
        action: { kind: 'webhook', url: `https://example.com/${SECRET}`, secretName: 's' },
      },
    ],
    targetDeadlineMs: Infinity,
  });
  const text = await readFile(path, 'utf8');
  expect(text).not.toContain(SECRET);
  expect(text).toContain('"https://example.com"');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await replayed(path)).toMatch(/said and decided the same\.\n$/);
});

test('the rules that a policy allows to break are in the file, and count in the replay', async () => {
  const cluster = { apiServers: [{ name: 'c1', version: 'v1.20.0' }] };
  const path = await written({ allow: new Set(['KubeletAhead']) }, MODULES, { cluster });
  expect(await readFile(path, 'utf8')).toContain('KubeletAhead');
  expect(await replayed(path)).toMatch(/said and decided the same\.\n$/);
});

test('a plan of a dialect that this release does not know is refused, and never explained with the advice of another dialect', async () => {
  const toys: readonly SessionDialect[] = MODULES.map((each) => ({ ...each, name: 'toy' }));
  const path = await written({}, toys);
  await expect(replayed(path)).rejects.toThrow(
    /cannot read: Refit has no texts for the dialect toy/,
  );
});

test('a replay names each line that the other release said, and each line that only this one says', async () => {
  const path = await written();
  const file = JSON.parse(await readFile(path, 'utf8')) as { told: { why: string[] } };
  file.told.why = ['an older sentence'];
  await writeFile(path, JSON.stringify({ ...file, release: '0.0.9' }));
  const text = await replayed(path);
  expect(text).toMatch(
    /^Refit 0\.0\.9 said or decided something else \(-\) than Refit .* \(\+\):$/m,
  );
  expect(text).toMatch(/^- an older sentence$/m);
  expect(text).toMatch(/^\+ Plan /m);
});

test('the file of an earlier release, whose snapshot had no parts, leads to the commands of that release', async () => {
  const file = join(import.meta.dirname, '../../../test/fixtures/turns/flat-snapshot.json');
  const text = await replayed(file);
  expect(text).toMatch(/^Plan autopilot \(id1\): \{"kind":"record"/m);
  expect(text).not.toMatch(/^[-+] Plan autopilot \(id1\): \{/m);
  expect(text).toContain('w3    Downloading  4 min 58 s');
});

test.each<[string, BufferEncoding]>([
  ['UTF-8', 'utf8'],
  ['UTF-16', 'utf16le'],
])(
  'a file that an editor saved in %s with a byte order mark is replayed',
  async (_form, encoding) => {
    const path = await written();
    await writeFile(path, `\uFEFF${await readFile(path, 'utf8')}`, encoding);
    expect(await replayed(path)).toMatch(/said and decided the same\.\n$/);
  },
);

test.each([
  ['no JSON', '{', 'is not JSON'],
  ['another document', '{"kind":"Plan"}', 'contains no turn of Refit'],
])('a file with %s is refused, and the error says what is wrong', async (_what, text, problem) => {
  const path = join(await directory(), 'other.json');
  await writeFile(path, text);
  await expect(replayed(path)).rejects.toThrow(RefitError);
  await expect(replayed(path)).rejects.toThrow(problem);
});

test('a file that does not exist is refused', async () => {
  const path = join(await directory(), 'none.json');
  await expect(replayed(path)).rejects.toThrow(`${path} cannot be read`);
});
