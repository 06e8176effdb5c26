/** Proves that a Plan whose `prepare` waits for ever says so, and names the Plan that it waits for. */
import { expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode, withKubelet } from '../../../../test/support/builders/nodes.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import { type Node, nodes } from '../../../kube/resources.ts';
import { awaitedBy, endlessWaits, endlessWaitsAmong } from './awaited-plan.ts';
import { cattle } from './cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';

const waitingFor = (name: string, other?: string): CattlePlan =>
  buildCattlePlan(
    name,
    other === undefined
      ? {}
      : { prepare: { image: 'rancher/k3s-upgrade', args: ['prepare', other] } },
  );
const AGENTS = waitingFor('agents', 'server-plan');
const withImage = (name: string, image: string): CattlePlan =>
  buildCattlePlan(name, { upgrade: { image } });
const elsewhere = (name: string): CattlePlan => {
  const plan = waitingFor(name);
  return { ...plan, metadata: { ...plan.metadata, namespace: 'other' } };
};
const REMEDY = 'write the name of the right Plan into spec.prepare.args, or create that Plan';

test.each<[string, CattlePlan, readonly CattlePlan[], string | undefined]>([
  [
    'for a Plan that does not exist',
    AGENTS,
    [],
    'server-plan in spec.prepare, which does not exist',
  ],
  [
    'for itself',
    waitingFor('agents', 'agents'),
    [],
    'agents in spec.prepare, which is this Plan itself',
  ],
  [
    'for a Plan that waits for it',
    AGENTS,
    [waitingFor('server-plan', 'third'), waitingFor('third', 'agents')],
    'server-plan in spec.prepare, which waits for this Plan',
  ],
  ['for a Plan that exists', AGENTS, [waitingFor('server-plan')], undefined],
  [
    'for a Plan that itself waits for ever',
    AGENTS,
    [waitingFor('server-plan', 'server-plan')],
    undefined,
  ],
  ['for no Plan', waitingFor('agents'), [], undefined],
])('a Plan that waits %s', (_what, plan, others, wanted) => {
  const sentences =
    wanted === undefined
      ? []
      : [`Plan system-upgrade/agents waits for Plan system-upgrade/${wanted}: ${REMEDY}`];
  const inCluster = buildWorldOf([cattlePlans, [plan, ...others]], [nodes, []]);
  expect(endlessWaits(plan, inCluster, [])).toEqual(sentences);
  const inFiles = buildWorldOf([cattlePlans, []], [nodes, []]);
  expect(endlessWaits(plan, inFiles, [plan, ...others])).toEqual(sentences);
  const fault = awaitedBy(plan, inCluster)?.fault;
  expect(fault?.remedy).toBe(wanted === undefined ? undefined : REMEDY);
});

const installing = (plan: CattlePlan, version: string): CattlePlan => ({
  ...plan,
  spec: { ...(plan.spec as CattleSpec), version },
});
const following = (plan: CattlePlan, latestVersion?: string): CattlePlan => ({
  ...installing(plan, ''),
  ...(latestVersion !== undefined && { status: { latestVersion } }),
});
const complete = (plan: CattlePlan): CattlePlan => ({
  ...plan,
  status: { conditions: [{ type: 'Complete', status: 'True' }] },
});
const SERVERS = installing(waitingFor('server-plan'), 'v1.36.3+k3s1');

test.each<[string, CattlePlan, CattlePlan, string | undefined]>([
  ['the same version', installing(AGENTS, 'v1.36.3-k3s1'), SERVERS, undefined],
  ['another version', installing(AGENTS, 'v1.36.3+k3s2'), SERVERS, 'v1.36.3-k3s2'],
  ['another version, but is complete', complete(installing(AGENTS, 'v1.2.3')), SERVERS, undefined],
  ['another version, from a channel', following(AGENTS, 'v1.2.3'), SERVERS, 'v1.2.3'],
  ['no version yet', following(AGENTS), SERVERS, undefined],
  ['a version, and the other one follows a channel', AGENTS, following(SERVERS, 'v1'), undefined],
])('a Plan that waits has %s', (_what, plan, other, version) => {
  const given =
    version &&
    `Plan system-upgrade/agents waits for Plan system-upgrade/server-plan in spec.prepare, which has the version v1.36.3-k3s1 and not ${version}: give both Plans the same version`;
  const sentences = given === undefined ? [] : [given];
  const world = buildWorldOf([cattlePlans, [plan, other]], [nodes, []]);
  expect(endlessWaits(plan, world, [])).toEqual(sentences);
  expect(endlessWaitsAmong(plan, [plan, other])).toEqual(sentences);
});

const prepared = (args: string[]) => ({ image: 'rancher/k3s-upgrade', args });
/** The Plan of the agents, and the Plan for which it waits; that one selects the Nodes with this label. */
const agentsOf = (more: Partial<CattleSpec> = {}): CattlePlan =>
  buildCattlePlan('agents', {
    version: 'v1.36.3+k3s1',
    prepare: prepared(['prepare', 'server-plan']),
    ...more,
  });
const serversWith = (label: string, status: CattlePlan['status'] = {}): CattlePlan => ({
  ...buildCattlePlan('server-plan', {
    version: 'v1.36.3+k3s1',
    nodeSelector: { matchExpressions: [{ key: label, operator: 'Exists' }] },
  }),
  status,
});
const SERVER = 'node-role.kubernetes.io/control-plane';
const server = (kubeletVersion: string, labels: Record<string, string> = { [SERVER]: 'true' }) =>
  withKubelet(
    buildNode('s1', { labels: { 'kubernetes.io/hostname': 's1', ...labels } }),
    kubeletVersion,
  );
const ENDED = {
  latestHash: 'abc',
  latestVersion: 'v1.36.3-k3s1',
  conditions: [{ type: 'Complete', status: 'True' as const }],
};
const LEFT =
  'Plan system-upgrade/agents waits for Plan system-upgrade/server-plan in spec.prepare, which leaves s1 (v1.36.2+k3s1) without v1.36.3+k3s1: ' +
  'let that Plan upgrade every Node with the label node-role.kubernetes.io/control-plane';

const HASH = 'plan.upgrade.cattle.io/server-plan';
/** The Job of the Plan ran on this server, which reports an earlier version nevertheless. */
const passedOver = server('v1.36.2+k3s1', { [SERVER]: 'true', [HASH]: 'abc' });
const OTHER_VERSION =
  'Plan system-upgrade/agents waits for Plan system-upgrade/server-plan in spec.prepare, which has the version v1.36.2-k3s1 and not v1.36.3-k3s1: ' +
  'give both Plans the same version';
const older = (plan: CattlePlan): CattlePlan => installing(plan, 'v1.36.2+k3s1');
const third = buildCattlePlan('more-servers', {
  version: 'v1.36.3+k3s1',
  upgrade: { image: 'rancher/k3s-upgrade' },
});

test.each<[string, CattlePlan, readonly CattlePlan[], Node, string | undefined]>([
  [
    'that its Plan does not select',
    agentsOf(),
    [serversWith('master')],
    server('v1.36.2+k3s1'),
    LEFT,
  ],
  [
    'that its Plan has passed over',
    { ...agentsOf(), status: { latestVersion: 'v1.36.3-k3s1' } },
    [serversWith(SERVER, ENDED)],
    passedOver,
    LEFT,
  ],
  [
    'that joined after its Plan was complete',
    agentsOf(),
    [serversWith(SERVER, ENDED)],
    server('v1.36.2+k3s1'),
    undefined,
  ],
  [
    'that its Plan will still upgrade',
    agentsOf(),
    [serversWith(SERVER)],
    server('v1.36.2+k3s1'),
    undefined,
  ],
  [
    'that another Plan will upgrade',
    agentsOf(),
    [serversWith('master'), third],
    server('v1.36.2+k3s1'),
    undefined,
  ],
  [
    'that another Plan would upgrade to another version',
    agentsOf(),
    [serversWith('master'), older(third)],
    server('v1.36.2+k3s1'),
    LEFT,
  ],
  [
    'that another Plan of an unknown image selects',
    agentsOf(),
    [serversWith('master'), { ...third, spec: { ...third.spec, upgrade: { image: 'own' } } }],
    server('v1.36.2+k3s1'),
    LEFT,
  ],
  [
    'that has the version, although its Plan does not select it',
    agentsOf(),
    [serversWith('master')],
    server('v1.36.3+k3s1'),
    undefined,
  ],
  [
    'that has the version, although its Plan has another one',
    agentsOf(),
    [older(serversWith(SERVER))],
    server('v1.36.3+k3s1'),
    undefined,
  ],
  [
    'whose Plan has another version',
    agentsOf(),
    [older(serversWith(SERVER))],
    server('v1.36.2+k3s1'),
    OTHER_VERSION,
  ],
  [
    'with a later version than the Plan',
    agentsOf(),
    [serversWith('master')],
    server('v1.36.4+k3s1'),
    LEFT.replace('1.36.2', '1.36.4').replace(
      /let that Plan .*/,
      'give this Plan the version of the servers',
    ),
  ],
  [
    'that is none by its labels',
    agentsOf(),
    [serversWith('master')],
    server('v1.36.2+k3s1', {}),
    undefined,
  ],
  [
    'and whose prepare has an unknown image',
    agentsOf({ prepare: { image: 'own', args: ['prepare', 'server-plan'] } }),
    [older(serversWith('master'))],
    server('v1.36.2+k3s1'),
    undefined,
  ],
])('a Plan that waits for a server %s', (_what, plan, others, node, wanted) => {
  const world = buildWorldOf([cattlePlans, [plan, ...others]], [nodes, [node]]);
  expect(endlessWaits(plan, world, [])).toEqual(wanted === undefined ? [] : [wanted]);
  const fault = awaitedBy(plan, world)?.fault;
  expect(fault === undefined ? undefined : `${fault.why}: ${fault.remedy}`).toBe(
    wanted?.replace(/^.*spec\.prepare, /, ''),
  );
});

test('a Plan with a mirror of the image of K3s waits for the servers like the image itself', () => {
  const plan = agentsOf({ prepare: { image: 'registry/own', args: ['prepare', 'server-plan'] } });
  const world = buildWorldOf(
    [cattlePlans, [plan, serversWith('master')]],
    [nodes, [server('v1.36.2+k3s1')]],
  );
  expect(endlessWaits(plan, world, [])).toEqual([]);
  expect(endlessWaits(plan, world, [], ['registry/own'])).toEqual([LEFT]);
});

const TITLE = 'Plan system-upgrade/server-plan';
const SERVERS_READY = `no node of ${TITLE} is in progress, and every server reports v1.36.3+k3s1`;

test.each<[string, CattlePlan, CattlePlan['status'], string, string | undefined]>([
  ['while a server has an earlier version', agentsOf(), {}, 'v1.36.2+k3s1', SERVERS_READY],
  [
    'while a server is in progress',
    agentsOf(),
    { applying: ['s1'] },
    'v1.36.3+k3s1',
    SERVERS_READY,
  ],
  ['until every server has the version', agentsOf(), {}, 'v1.36.3+k3s1', undefined],
  [
    'until the other Plan is complete, if its image is unknown',
    agentsOf({ prepare: { image: 'own', args: ['prepare', 'server-plan'] } }),
    {},
    'v1.36.3+k3s1',
    `${TITLE} is complete with the same version`,
  ],
])('a Plan waits for another Plan %s', (_what, plan, status, version, ends) => {
  const world = buildWorldOf(
    [cattlePlans, [plan, serversWith(SERVER, status)]],
    [nodes, [server(version)]],
  );
  expect(awaitedBy(plan, world)?.ends).toBe(ends);
});

const MEANT =
  'server-plan in spec.prepare, which none of the files has, and Plan servers has the same image: ' +
  'write servers into spec.prepare.args if that Plan is meant, or else check that the cluster has Plan server-plan';

test.each<[string, CattlePlan, readonly CattlePlan[], string | undefined]>([
  ['a Plan that is in no file', AGENTS, [], undefined],
  ['a Plan under another name than its file has', AGENTS, [waitingFor('servers')], MEANT],
  [
    'the same Plan as another Plan for agents',
    AGENTS,
    [waitingFor('more', 'server-plan')],
    undefined,
  ],
  ['a Plan, beside a Plan with another image', AGENTS, [withImage('servers', 'other')], undefined],
  ['a Plan, beside a Plan of another namespace', AGENTS, [elsewhere('servers')], undefined],
  ['a Plan that is in a file', AGENTS, [waitingFor('server-plan'), waitingFor('x')], undefined],
  [
    'itself',
    waitingFor('agents', 'agents'),
    [],
    `agents in spec.prepare, which is this Plan itself: ${REMEDY}`,
  ],
  [
    'a Plan that waits for it',
    AGENTS,
    [waitingFor('server-plan', 'agents')],
    `server-plan in spec.prepare, which waits for this Plan: ${REMEDY}`,
  ],
  ['no Plan', waitingFor('agents'), [waitingFor('servers')], undefined],
])('in files, a Plan that waits for %s', (_what, plan, others, wanted) => {
  const sentences =
    wanted === undefined
      ? []
      : [`Plan system-upgrade/agents waits for Plan system-upgrade/${wanted}`];
  expect(endlessWaitsAmong(plan, [plan, ...others])).toEqual(sentences);
});

test('status and preview of every Rancher Plan warn about a wait that never ends', () => {
  const { reporting } = cattle({
    name: 'controller',
    namespace: 'system-upgrade',
    job: DEFAULT_JOB_SETTINGS,
  });
  const world = buildWorldOf([cattlePlans, [AGENTS]], [nodes, []]);
  expect(reporting?.warnings?.(AGENTS, world, [AGENTS])).toEqual([
    `Plan system-upgrade/agents waits for Plan system-upgrade/server-plan in spec.prepare, which does not exist: ${REMEDY}`,
  ]);
});
