/** Tests whether a downgrade is possible, in every situation that the code distinguishes. */
import { describe, expect, test } from 'vitest';
import {
  differingKept,
  lacksBundle,
  pointOfNoReturn,
  type UpgradedNode,
  wayBackOfAll,
  wayBackOfNode,
} from './way-back.ts';

const NOW = Date.parse('2026-11-20T10:00:00Z');
const SOON = '2026-11-20T11:00:00Z';
const LATER = '2026-12-20T11:00:00Z';
const PAST = '2026-11-20T09:00:00Z';
const OLD = 'v1.36.2+k0s.0';
const PATCH = 'v1.36.3+k0s.0';
const MINOR = 'v1.37.0+k0s.0';
const SUM = 'a'.repeat(64);
const KEPT = { version: OLD, sha256: SUM };

const node = (more: Partial<UpgradedNode> = {}): UpgradedNode => ({
  name: 'w1',
  role: 'worker',
  from: OLD,
  to: PATCH,
  kept: KEPT,
  ...more,
});

describe('one node', () => {
  test.each<[string, Partial<UpgradedNode>, (string | undefined)[], string, RegExp]>([
    [
      'a worker with its binary',
      {},
      [PATCH],
      'open',
      /^the host keeps v1\.36\.2\+k0s\.0 until its next upgrade$/,
    ],
    ['a worker a minor version back', { to: MINOR }, [MINOR], 'open', /keeps/],
    [
      'three minor versions behind',
      { from: 'v1.34.1', kept: { version: 'v1.34.1', sha256: SUM } },
      [MINOR],
      'open',
      /keeps/,
    ],
    [
      'four minor versions behind',
      { from: 'v1.33.1', kept: { version: 'v1.33.1', sha256: SUM } },
      [MINOR],
      'closed',
      /^a kubelet of v1\.33 is too old/,
    ],
    [
      'one of several API servers is too new',
      { from: 'v1.33.1', kept: { version: 'v1.33.1', sha256: SUM } },
      [OLD, MINOR],
      'closed',
      /too old/,
    ],
    [
      'a kubelet that was newer',
      { from: MINOR, kept: { version: MINOR, sha256: SUM } },
      [PATCH],
      'closed',
      /newer than the API server/,
    ],
    ['an API server of unknown version', {}, [undefined], 'open', /keeps/],
    ['a controller, patch', { role: 'controller' }, [PATCH], 'open', /keeps/],
    [
      'a controller, minor',
      { role: 'controller', to: MINOR },
      [MINOR],
      'closed',
      /^controllers cannot go back from v1\.37 to v1\.36/,
    ],
    [
      'a controller, minor, with a download',
      { role: 'controller', to: MINOR, hasDownload: true },
      [MINOR],
      'closed',
      /backup/,
    ],
    [
      'a controller of a forced downgrade',
      { role: 'controller', from: MINOR, to: OLD },
      [OLD],
      'closed',
      /^from v1\.36 back to v1\.37 is an upgrade of controllers: apply a plan with v1\.37$/,
    ],
    ['an unknown earlier version', { from: undefined }, [PATCH], 'unknown', /not known/],
    ['an unreadable earlier version', { from: 'nightly' }, [PATCH], 'unknown', /not known/],
    ['an old agent', { kept: undefined }, [PATCH], 'unknown', /does not say/],
    [
      'an old agent and a download',
      { kept: undefined, hasDownload: true },
      [PATCH],
      'open',
      /download/,
    ],
    [
      'a time that ends',
      { kept: { ...KEPT, until: SOON } },
      [PATCH],
      'closing',
      /until 2026-11-20T11/,
    ],
    [
      'a time that has ended',
      { kept: { ...KEPT, until: PAST } },
      [PATCH],
      'closed',
      /the retention time is over/,
    ],
    [
      'removed after its time',
      { kept: { ...KEPT, gone: 'Expired' } },
      [PATCH],
      'closed',
      /the retention time is over/,
    ],
    [
      'removed for room',
      { kept: { ...KEPT, gone: 'DiskFull' } },
      [PATCH],
      'closed',
      /to make room for a download/,
    ],
    [
      'removed for room, with a download',
      { kept: { ...KEPT, gone: 'DiskFull' }, hasDownload: true },
      [PATCH],
      'open',
      /download/,
    ],
    [
      'the agent does not say the sha256',
      { kept: { version: OLD } },
      [PATCH],
      'closed',
      /^the agent does not say which sha256 the kept .* has, and no download of it is known, so refit rollback needs --url and --sha256$/,
    ],
    [
      'the agent does not say the sha256, and a download is known',
      { kept: { version: OLD }, hasDownload: true },
      [PATCH],
      'open',
      /download/,
    ],
    [
      'the next run replaced it',
      { kept: { version: PATCH } },
      [PATCH],
      'closed',
      /^the agent last announced that its host keeps v1\.36\.3\+k0s\.0 instead/,
    ],
    [
      'the announcement is older than the end of the upgrade a moment ago',
      { kept: { version: PATCH }, ended: '2026-11-20T09:59:50Z' },
      [PATCH],
      'unknown',
      /^the agent may not have announced yet that its host keeps v1\.36\.2\+k0s\.0: it last announced v1\.36\.3\+k0s\.0$/,
    ],
    [
      'the upgrade ended two minutes ago, and the announcement names another file',
      { kept: { version: PATCH }, ended: '2026-11-20T09:58:00Z' },
      [PATCH],
      'closed',
      /instead of/,
    ],
    [
      'the upgrade ended a moment ago, and the file was removed for room',
      { kept: { version: PATCH, gone: 'DiskFull' }, ended: '2026-11-20T09:59:50Z' },
      [PATCH],
      'closed',
      /to make room/,
    ],
  ])('%s', (_, more, servers, state, message) => {
    expect(wayBackOfNode(node(more), servers, NOW)).toMatchObject({
      state,
      message: expect.stringMatching(message) as string,
    });
  });
});

test('a worker cannot go back further than its distribution supports kubelets that are older than an API server', () => {
  const back = { from: 'v1.35.4', kept: { version: 'v1.35.4', sha256: SUM } };
  expect(wayBackOfNode(node(back), [MINOR], NOW, 2).state).toBe('open');
  expect(wayBackOfNode(node(back), [MINOR], NOW, 1)).toEqual({
    state: 'closed',
    message: `a kubelet of v1.35 is too old for the API server of ${MINOR}`,
  });
});

test.each<[string, UpgradedNode['keptBundle'], boolean]>([
  ['no bundle was placed', undefined, false],
  ['it is there', { version: OLD }, false],
  ['it is gone', { version: OLD, gone: 'DiskFull' }, true],
  [
    'it is gone, and the plan wrote its version without the v',
    { version: OLD.slice(1), gone: 'DiskFull' },
    true,
  ],
  ['that of another build is gone', { version: 'v1.36.2+k0s.1', gone: 'DiskFull' }, false],
  ['one without a version is gone', { gone: 'Removed' }, false],
])('the bundle of the earlier version: %s', (_, keptBundle, lacks) => {
  expect(lacksBundle(node({ keptBundle }))).toBe(lacks);
  expect(lacksBundle(node({ keptBundle, from: undefined }))).toBe(false);
});

describe('all nodes', () => {
  const open = { state: 'open', message: 'a' } as const;
  const closing = (until: string) =>
    ({ state: 'closing', until, message: `until ${until}` }) as const;
  const closed = { state: 'closed', message: 'it is gone' } as const;
  test.each([
    ['no node at all', [], undefined],
    ['all open', [open, open], { state: 'open' }],
    [
      'the first that closes counts',
      [closing(LATER), closing(SOON), open],
      { state: 'closing', until: SOON, message: `n1: until ${SOON}; and 1 more` },
    ],
    [
      'one closed closes all',
      [closed, closing(SOON), closed],
      { state: 'closed', message: 'n0, n2: it is gone' },
    ],
  ])('%s', (_, ways, wanted) => {
    const named = ways.map((way, index) => ({ ...way, name: `n${index}` }));
    const found = wayBackOfAll(named);
    if (wanted === undefined) expect(found).toBeUndefined();
    else expect(found).toMatchObject(wanted);
  });
});

test('only another minor version of controllers is a point of no return', () => {
  expect(pointOfNoReturn(OLD, PATCH)).toBeUndefined();
  expect(pointOfNoReturn(undefined, MINOR)).toBeUndefined();
  expect(pointOfNoReturn(MINOR, OLD)).toBeUndefined();
  expect(pointOfNoReturn(OLD, MINOR)).toMatch(
    /^after the first controller runs v1\.37, controllers cannot go back/,
  );
});

test('kept binaries of one version differ only if their sha256 differ, and then the nodes are named', () => {
  const same = [
    { name: 'w1', sha256: 'aa' },
    { name: 'w2', sha256: 'aa' },
  ];
  expect(differingKept(same)).toBeUndefined();
  expect(differingKept([...same, { name: 'w3', sha256: 'bb' }])).toBe(
    'the kept binaries differ, with the sha256 aa on w1, w2; bb on w3',
  );
});
