/** Tests whether a rollout can be rolled back, according to the report for users, in each situation of a cluster. */

import { describe, expect, test } from 'vitest';
import { succeeded } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import type { NodeAgent } from '../../signal/agent-presence.ts';
import { keptFileUrl } from '../../signal/kept-file.ts';
import { answered } from '../model/asked.ts';
import type { DecisionsOfPeople } from '../model/decisions-of-people.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { RecordedState, Role, Stage } from '../model/rollout.ts';
import { pointsOfNoReturn, wayBackOf, wayBackOfRollout } from './way-back.ts';

const OLDEST = 'v1.33.4+x.0';
const OLD = 'v1.36.2+x.0';
const PATCH = 'v1.36.3+x.0';
const MINOR = 'v1.37.0+x.0';
const SUM = 'a'.repeat(64);
const PLATFORM = 'linux-amd64';

type Kept = NonNullable<NodeAgent['kept']>;

interface Situation {
  readonly role: Role;
  readonly state: RecordedState;
  /** The earlier version; undefined if the agent has not reported one. */
  readonly from: string | undefined;
  readonly to: string;
  readonly kept: Kept | undefined;
  readonly keptBundle?: NodeAgent['keptBundle'];
  /** The versions of the API servers; undefined if the dialect knows no API servers. */
  readonly servers: readonly (string | undefined)[] | undefined;
  readonly stage: Partial<Stage>;
  /** True if the object of the node proves that the node runs the new version. */
  readonly isThere?: boolean;
  /** The address from which an earlier run downloaded the earlier version. */
  readonly recorded?: string;
}

const USUAL: Situation = {
  role: 'worker',
  state: 'done',
  from: OLD,
  to: PATCH,
  kept: { version: OLD, sha256: SUM },
  servers: [PATCH],
  stage: {},
};

function snapshotOf(situations: readonly Partial<Situation>[]) {
  const all = situations.map((each) => ({ ...USUAL, ...each }));
  const stages = all.map(({ role, state, to, stage }, index) =>
    buildStage(role, [buildTarget(`n${index}`, state, { since: later(0) })], {
      command: index,
      version: to,
      ...stage,
    }),
  );
  const facts = all.map(
    ({ from, kept, keptBundle, isThere }, index): [string, Partial<TargetFacts>] => [
      `n${index}`,
      {
        platform: PLATFORM,
        ...(isThere === undefined ? {} : { isThere }),
        observation: {
          ...succeeded(),
          ...(from === undefined ? {} : { report: { from } }),
        },
        agent: {
          ours: true,
          title: 'Refit',
          ...(kept === undefined ? {} : { kept }),
          ...(keptBundle && { keptBundle }),
        },
      },
    ],
  );
  const gathered = buildSnapshot(buildRollout(stages), Object.fromEntries(facts));
  const { servers, recorded: url } = all[0] ?? {};
  const snapshot =
    url === undefined
      ? gathered
      : withParts(gathered, { plan: { decisions: answered(recordOf(url)) } });
  if (servers === undefined) return snapshot;
  const apiServers = servers.map((version, index) => ({ name: `c${index}`, version }));
  return withParts(snapshot, { cluster: { apiServers } });
}

function recordOf(url: string): DecisionsOfPeople {
  const run: NodeRolloutRun = {
    id: 'id0',
    planUid: 'uid',
    started: later(0),
    phase: 'done',
    counts: { total: 1, done: 1, failed: 0, inProgress: 0, pending: 0, skipped: 0 },
    downloads: [{ version: OLD, platform: PLATFORM, url }],
  };
  return { plan: 'p', place: '', exists: true, approvals: [], accepted: [], history: [run] };
}

function wayOf(situation: Partial<Situation>) {
  const snapshot = snapshotOf([situation]);
  const [stage] = snapshot.rollout.stages;
  const [target] = stage?.targets ?? [];
  return stage && target && wayBackOf({ snapshot, now: T0 + 2 * MINUTE }, stage, target);
}

const NO_DOWNLOAD = 'and no download of it is known, so refit rollback needs --url and --sha256';
const NO_RETURN =
  'controllers cannot go back from v1.37 to v1.36, because etcd may hold objects that v1.36 cannot read: only a backup from before the upgrade brings v1.36 back';
const UNSAID = `the agent does not say whether the host keeps ${OLD}, ${NO_DOWNLOAD}`;
const KEEPS = `the host keeps ${OLD} until its next upgrade`;

test.each<[string, Partial<Situation>, string, string]>([
  ['the binary is kept', {}, 'open', KEEPS],
  ['a worker of another minor version', { to: MINOR, servers: [MINOR] }, 'open', KEEPS],
  ['a controller within its minor version', { role: 'controller' }, 'open', KEEPS],
  [
    'the airgap bundle is gone',
    { keptBundle: { version: OLD, gone: 'DiskFull' } },
    'open',
    `${KEEPS}; the host no longer has the airgap bundle of ${OLD}, so place it again before you go back; this is not necessary if the container runtime still has its images`,
  ],
  [
    'the airgap bundle of a much older version is gone',
    { keptBundle: { version: OLDEST, gone: 'Expired' } },
    'open',
    KEEPS,
  ],
  [
    'keepPrevious runs',
    { kept: { version: OLD, sha256: SUM, until: later(300_000) } },
    'closing',
    `the host keeps ${OLD} until ${later(300_000)}`,
  ],
  [
    'keepPrevious is over, and the agent has not removed the binary yet',
    { kept: { version: OLD, sha256: SUM, until: later(0) } },
    'closed',
    `the host no longer keeps ${OLD}, because the retention time is over, ${NO_DOWNLOAD}`,
  ],
  [
    'keepPrevious is over, and the binary is gone',
    { kept: { version: OLD, gone: 'Expired' } },
    'closed',
    `the host no longer keeps ${OLD}, because the retention time is over, ${NO_DOWNLOAD}`,
  ],
  [
    'a full disk removed the binary',
    { kept: { version: OLD, gone: 'DiskFull' } },
    'closed',
    `the agent removed ${OLD} to make room for a download, ${NO_DOWNLOAD}`,
  ],
  [
    'the host keeps the binary of another run',
    { kept: { version: OLDEST } },
    'closed',
    `the agent last announced that its host keeps ${OLDEST} instead of ${OLD}, ${NO_DOWNLOAD}`,
  ],
  [
    'the record of the kept binary has no version',
    { kept: {} },
    'closed',
    `the agent last announced that its host keeps another version instead of ${OLD}, ${NO_DOWNLOAD}`,
  ],
  [
    'the agent does not say which sha256 the kept binary has',
    { kept: { version: OLD } },
    'closed',
    `the agent does not say which sha256 the kept ${OLD} has, ${NO_DOWNLOAD}`,
  ],
  [
    'the binary is gone, and an earlier run downloaded it',
    { kept: { version: OLD, gone: 'Expired' }, recorded: 'https://example.com/old' },
    'open',
    `a download of ${OLD} is known`,
  ],
  [
    'the binary is gone, and an earlier run took it from the hosts',
    { kept: { version: OLD, gone: 'Expired' }, recorded: keptFileUrl(OLD) },
    'closed',
    `the host no longer keeps ${OLD}, because the retention time is over, ${NO_DOWNLOAD}`,
  ],
  ['the agent is too old, or has not reported', { kept: undefined }, 'unknown', UNSAID],
  [
    'somebody removed the binary by hand',
    { kept: { gone: 'Removed' } },
    'closed',
    `somebody removed the binary of ${OLD} that the host kept, ${NO_DOWNLOAD}`,
  ],
  [
    'somebody changed the binary by hand',
    { kept: { gone: 'Changed' } },
    'closed',
    `somebody changed the binary of ${OLD} that the host kept, ${NO_DOWNLOAD}`,
  ],
  [
    'the version before cannot be read',
    { from: 'nightly' },
    'unknown',
    'the version before the upgrade is not known',
  ],
  [
    'the older kubelet is too old for the API server',
    { from: OLDEST, to: MINOR, kept: { version: OLDEST, sha256: SUM }, servers: [MINOR] },
    'closed',
    `a kubelet of v1.33 is too old for the API server of ${MINOR}`,
  ],
  [
    'one of the API servers is too new already',
    { from: OLDEST, kept: { version: OLDEST, sha256: SUM }, servers: [OLD, MINOR] },
    'closed',
    `a kubelet of v1.33 is too old for the API server of ${MINOR}`,
  ],
  [
    'the older kubelet is newer than the API server',
    {
      from: MINOR,
      to: MINOR.replace('.0+', '.1+'),
      kept: { version: MINOR, sha256: SUM },
      servers: [PATCH],
    },
    'closed',
    `a kubelet of v1.37 is newer than the API server of ${PATCH}`,
  ],
  ['an API server whose version is unknown', { servers: [undefined] }, 'open', KEEPS],
  [
    'a control plane of another minor version, whatever it emulates or has stored',
    { role: 'controller', to: MINOR, servers: [MINOR] },
    'closed',
    NO_RETURN,
  ],
  [
    'the same, although the binary is gone as well',
    { role: 'controller', to: MINOR, kept: { version: OLD, gone: 'DiskFull' } },
    'closed',
    NO_RETURN,
  ],
  [
    'the same, while the other API servers are still older',
    { role: 'controller', to: MINOR, servers: [MINOR, OLD] },
    'closed',
    NO_RETURN,
  ],
])('%s', (_, situation, state, message) => {
  expect(wayOf(situation)).toMatchObject({ state, message });
});

test('just after its upgrade, a node whose agent still announces an earlier file may go back', () => {
  const snapshot = snapshotOf([{ kept: { version: MINOR, sha256: SUM } }]);
  expect(wayBackOfRollout({ snapshot, now: T0 })).toMatchObject({ state: 'unknown' });
  expect(wayBackOfRollout({ snapshot, now: T0 + 2 * MINUTE })).toMatchObject({ state: 'closed' });
});

describe('nothing is said', () => {
  test.each<[string, Partial<Situation>]>([
    ['of a node that never moved', { state: 'pending' }],
    ['of a node in progress', { state: 'intended' }],
    ['of a node that failed, and went back by itself', { state: 'failed' }],
    ['of a node that the plan left out', { state: 'skipped' }],
    ['of a node that had the version before', { from: PATCH }],
    ['of an image bundle, which stays on the disk', { stage: { keepsVersion: true } }],
    ['if no agent has reported what ran before', { from: undefined }],
    ['in a dialect that knows no API servers: its command tells', { servers: undefined }],
  ])('%s', (_, situation) => {
    expect(wayOf(situation)).toBeUndefined();
    expect(wayBackOfRollout({ snapshot: snapshotOf([situation]), now: T0 })).toBeUndefined();
  });
});

describe('of a whole plan', () => {
  const whole = (...situations: readonly Partial<Situation>[]) =>
    wayBackOfRollout({ snapshot: snapshotOf(situations), now: T0 });

  test.each<[string, Partial<Situation>[], object | undefined]>([
    ['all nodes', [{}, {}], { state: 'open' }],
    [
      'all nodes, one of them without its airgap bundle',
      [{}, { keptBundle: { version: OLD, gone: 'Removed' } }],
      {
        state: 'open',
        message:
          'every upgraded node can go back to its earlier version; the airgap bundle of that version is gone from n1, so place it again before you go back; this is not necessary if the container runtime still has its images',
      },
    ],
    [
      'a node that runs the new version but failed afterwards counts, too',
      [{}, { state: 'failed', isThere: true, kept: { version: OLD, gone: 'Removed' } }],
      {
        state: 'closed',
        message: `n1: somebody removed the binary of ${OLD} that the host kept, ${NO_DOWNLOAD}`,
      },
    ],
    [
      'only the upgraded nodes of an unfinished plan count',
      [{}, { state: 'pending' }],
      { state: 'open' },
    ],
    [
      'a node of an unknown version makes it unknown',
      [{}, { from: undefined }],
      { state: 'unknown', message: 'n1: the version before the upgrade is not known' },
    ],
    [
      'controllers of another minor version close it, although workers can go back',
      [{ role: 'controller', to: MINOR, servers: [MINOR] }, { to: MINOR }],
      { state: 'closed', message: `n0: ${NO_RETURN}` },
    ],
    [
      'nodes whose kept binaries differ close it, because one Plan has one file',
      [{}, { kept: { version: OLD, sha256: 'b'.repeat(64) } }],
      {
        state: 'closed',
        message: `n0, n1: the kept binaries differ, with the sha256 ${SUM} on n0; ${'b'.repeat(64)} on n1, and no download of ${OLD} is known, so refit rollback needs --url and --sha256`,
      },
    ],
    [
      'the first that closes counts',
      [
        { kept: { version: OLD, sha256: SUM, until: later(60_000) } },
        { kept: { version: OLD, sha256: SUM, until: later(30_000) } },
      ],
      { state: 'closing', until: later(30_000) },
    ],
  ])('%s', (_, situations, wanted) => {
    expect(whole(...situations)).toMatchObject(wanted ?? {});
  });

  /** Returns the points of no return of targets that run the old version. */
  function pointsOf(...situations: readonly Partial<Situation>[]) {
    const snapshot = snapshotOf(situations);
    const get = (key: string) => {
      const facts = snapshot.targets.get(key);
      return facts && { ...facts, version: OLD };
    };
    return pointsOfNoReturn({ snapshot: { ...snapshot, targets: { ...snapshot.targets, get } } });
  }

  test('before the first controller moves, its point of no return is told once', () => {
    const pending = { role: 'controller', state: 'pending', to: MINOR } as const;
    expect(pointsOf(pending, pending)).toEqual([
      `after the first controller runs v1.37, ${NO_RETURN}`,
    ]);
  });

  test.each<[string, Partial<Situation>]>([
    ['of workers', { role: 'worker' }],
    ['of controllers that have moved', { state: 'done' }],
    ['of a stage that keeps the version', { stage: { keepsVersion: true } }],
    ['within a minor version', { to: PATCH }],
    ['in a dialect that knows no API servers', { servers: undefined }],
  ])('no point of no return is told %s', (_, more) => {
    expect(pointsOf({ role: 'controller', state: 'pending', to: MINOR, ...more })).toEqual([]);
  });
});
