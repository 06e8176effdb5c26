/** Tests what `refit rollback` prints if it must not roll back nodes of k0s. */
import { expect, test } from 'vitest';
import { keptFileUrl } from '../../../signal/kept-file.ts';
import { RefitError } from '../../../util/errors.ts';
import type { UnableNode } from '../plan/roll-back-plan.ts';
import {
  given,
  keptFilesIn,
  refuseImpossible,
  refuseInvalid,
  refuseUnable,
  withoutNodes,
} from './roll-back-command.ts';

const LAGS: UnableNode = {
  role: 'worker',
  name: 'w1',
  sentence: 'w1 reported that v2 is installed, but still shows v1',
  why: 'lags',
};
const UNTOLD: UnableNode = {
  role: 'worker',
  name: 'w2',
  sentence: 'w2: its present version is unknown',
  why: 'untold',
};
const ALONE = 'nothing was replaced, because not every node of the run can go back: ';

test.each<[string, UnableNode[], string, string]>([
  ['no node', [], '', ''],
  [
    'a worker that does not show its version yet',
    [LAGS],
    `${ALONE}w1 reported that v2 is installed, but still shows v1`,
    'run this again when w1 shows the version that runs; if somebody has put w1 back by hand, remove its signal: kubectl annotate node w1 k0sproject.io/autopilot-signal-data-; or let the other nodes go back without w1: --skip-node w1',
  ],
  [
    'a controller that does not show its version yet',
    [{ ...LAGS, role: 'controller', name: 'c1' }],
    `${ALONE}w1 reported`,
    'kubectl annotate controlnode c1 k0sproject.io/autopilot-signal-data-',
  ],
  [
    'a worker without a version',
    [UNTOLD],
    `${ALONE}w2: its present version is unknown`,
    'run this again when w2 shows its version; or let the other nodes go back without w2: --skip-node w2',
  ],
  [
    'a worker without a recorded build',
    [{ ...UNTOLD, why: 'unrecorded' }],
    ALONE,
    'put w2 back by hand, to the version that you know it ran before; or',
  ],
  ['a deleted worker', [{ ...UNTOLD, why: 'gone' }], ALONE, 'when w2 is in the cluster again; or'],
  [
    'two workers',
    [UNTOLD, LAGS],
    `${ALONE}w2: its present version is unknown; w1 reported`,
    'without w2, w1: --skip-node w2 --skip-node w1',
  ],
])('what to do is said about %s that cannot go back', (_name, unable, message, hint) => {
  const said = refusalOf(unable);
  expect(said?.message ?? '').toContain(message);
  expect(said?.line ?? '').toContain(hint);
  expect(said === undefined).toBe(unable.length === 0);
});

function refusalOf(unable: readonly UnableNode[]): RefitError | undefined {
  try {
    refuseUnable(unable);
    return undefined;
  } catch (error) {
    if (error instanceof RefitError) return error;
    throw error;
  }
}

test('a node that the user leaves out neither goes back nor blocks the others', () => {
  const ways = { ...MOVES, left: [], unable: [UNTOLD] };
  expect(withoutNodes(ways, [])).toEqual(ways);
  expect(withoutNodes(ways, ['w2'])).toEqual({ ...ways, unable: [], left: [UNTOLD.sentence] });
  expect(withoutNodes(ways, ['w1', 'w1'])).toEqual({
    moves: [],
    unable: [UNTOLD],
    left: ['w1 is left out, as --skip-node says'],
  });
  expect(() => withoutNodes(ways, ['w3'])).toThrow(
    '--skip-node w3: no node with this name would go back',
  );
});

test('many nodes that stay are told by what they run', () => {
  const names = ['w1', 'w2', 'w3', 'w4', 'w5', 'w6', 'w7', 'w8'];
  const left = [...names.map((name) => `${name} still runs v1`), 'c1 still runs v0'];
  expect(() => refuseImpossible({ moves: [], left, unable: [] }, { id: 'id1' }, [])).toThrow(
    /^no node goes back from run id1; w1 still runs v1; the same holds for w2, w3, w4, w5, w6 and 2 more; c1 still runs v0$/,
  );
});

test('a run that changed no node has nothing to undo, and the error names what helps', () => {
  const ways = { moves: [], left: ['w1 still runs v1'], unable: [], areUnmoved: true };
  const refused = (): void => refuseImpossible(ways, { id: 'id1' }, []);
  expect(refused).toThrow(
    'run id1 left no node at another version, so nothing is to be undone; w1 still runs v1',
  );
  expect(refused).toThrow(
    expect.objectContaining({ line: expect.stringContaining('use refit upgrade') }),
  );
});

const MOVES = {
  moves: [{ role: 'worker', name: 'w1', platform: 'linux-amd64', from: 'v2', to: 'v1' }],
} as const;

test.each<[string, Parameters<typeof given>[0], string]>([
  ['an address of another platform', { url: ['linux-amd46=https://e/x'] }, '--url linux-amd46: no'],
  [
    'a sum without an address',
    { url: ['linux-amd64=https://e/x'], sha256: ['linux-arm64=ab'] },
    '--sha256 linux-arm64: it needs the --url of the same platform',
  ],
  ['an address without a platform', { url: ['https://e/x'] }, 'has no platform'],
  [
    'a second address of a platform',
    { url: ['linux-amd64=https://e/x', 'linux-amd64=https://e/y'] },
    '--url linux-amd64 is given twice',
  ],
  [
    'a second sum of a platform',
    { url: ['linux-amd64=https://e/x'], sha256: ['linux-amd64=ab', 'linux-amd64=cd'] },
    '--sha256 linux-amd64 is given twice',
  ],
])('%s is refused', (_name, flags, message) => {
  expect(() => given(flags, MOVES, [])).toThrow(message);
});

const SEVERAL = { moves: [...MOVES.moves, { ...MOVES.moves[0], name: 'w2', to: 'v0' }] };
const FLAG = { url: ['linux-amd64=https://e/x'] };

test('one address is that of the only version without a recorded download', () => {
  expect(given(FLAG, SEVERAL, [{ version: 'v1', platform: 'linux-amd64' }])).toEqual([
    { version: 'v0', platform: 'linux-amd64', url: 'https://e/x' },
  ]);
  expect(given(FLAG, MOVES, [{ version: 'v1', platform: 'linux-amd64' }])).toEqual([
    { version: 'v1', platform: 'linux-amd64', url: 'https://e/x' },
  ]);
});

test.each<[string, Parameters<typeof given>[2]]>([
  ['all versions have', ['v0', 'v1'].map((version) => ({ version, platform: 'linux-amd64' }))],
  ['no version has', [{ version: 'v1', platform: 'linux-arm64' }]],
])('one address is refused for several versions if %s a recorded download', (_name, recorded) => {
  expect(() => given(FLAG, SEVERAL, recorded)).toThrow(
    '--url linux-amd64: nodes of this platform go back to v1, v0, but one file has only one version',
  );
});

test('any platform is accepted while the platform of a node is unknown', () => {
  const moves = [...MOVES.moves, { ...MOVES.moves[0], platform: undefined }];
  expect(given({ url: ['linux-arm64=https://e/x'] }, { moves }, [])).toEqual([
    { version: 'v1', platform: 'linux-arm64', url: 'https://e/x' },
  ]);
});

test('a Plan with a wrong address or sum is refused before anything is shown', () => {
  const planWith = (url: string, sha256: string) => ({
    metadata: { name: 'autopilot' },
    spec: {
      id: 'back',
      timestamp: '2026-11-27T00:00:00Z',
      commands: [
        {
          k0supdate: {
            version: 'v1.36.2+k0s.0',
            platforms: { 'linux-amd64': { url, sha256 } },
            targets: { workers: { discovery: { static: { nodes: ['w1'] } } } },
          },
        },
      ],
    },
  });
  expect(() => refuseInvalid(planWith('ftp://x', 'zz'))).toThrow(
    expect.objectContaining({ text: expect.stringMatching(/2 errors.*\n.*ftp:\/\/x.*\n.*zz/) }),
  );
  expect(() => refuseInvalid(planWith('https://e/x', 'ab'.repeat(32)))).not.toThrow();
});

test('the output says which files are taken from the hosts, once for each file', () => {
  const commandWith = (url: string) => ({
    k0supdate: {
      version: 'v1.36.2+k0s.0',
      platforms: { 'linux-amd64': { url, sha256: 'ab' } },
      targets: { workers: { discovery: { static: { nodes: ['w1'] } } } },
    },
  });
  const linesOf = (...urls: readonly string[]) =>
    keptFilesIn({ spec: { id: 'back', timestamp: 'now', commands: urls.map(commandWith) } });
  const kept = keptFileUrl('v1.36.2+k0s.0');
  expect(linesOf(kept, kept)).toEqual([
    'v1.36.2+k0s.0 for linux-amd64 is taken from the file that each host keeps, with the sha256 ab; nothing is downloaded',
  ]);
  expect(linesOf('https://e/x')).toEqual([]);
});
