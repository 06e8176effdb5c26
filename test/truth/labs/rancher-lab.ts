/** Sequences with a Plan of Rancher for two servers, whose Jobs may never end or fail. */
import { cattlePlans } from '../../../src/api/kinds.ts';
import { CONTROL_PREFIX } from '../../../src/dialects/cattle/plan/names.ts';
import { controlKey } from '../../../src/engine/model/controls.ts';
import {
  ROLLS_BACK_ANNOTATION,
  ROLLS_BACK_TO_ANNOTATION,
} from '../../../src/engine/model/earlier-versions.ts';
import { ifFound } from '../../../src/kube/status-error.ts';
import {
  createRancherCluster,
  FROM,
  type JobEnd,
  jobRunner,
  k3sPlan,
  NAMESPACE,
  rancherController,
} from '../../scenes/rancher.ts';
import { type Crew, crewOperations, failureOn, startCrew } from './crew.ts';
import { command, type Lab, type Operation, type Scenery } from './lab.ts';
import { lose, upgradeByHand } from './node-operations.ts';
import { policyOperations } from './policies.ts';

const SERVERS = ['s1', 's2'] as const;
const FLAGS = { namespace: NAMESPACE } as const;
const PLAN = `cattle/${NAMESPACE}/k3s-server`;
const NAME = 'k3s-server';

function endOf(scenery: Scenery, crew: Crew): JobEnd {
  return (node) => {
    if (crew.silent.has(node)) return 'forever';
    const isFailure = failureOn(scenery, crew, node) !== undefined;
    return isFailure ? { seconds: 0, result: 'failed' } : { seconds: 10, result: 'installed' };
  };
}

async function open(scenery: Scenery): Promise<void> {
  const { stage, truth } = scenery;
  await createRancherCluster(stage, SERVERS.length, 0);
  for (const name of SERVERS) truth.install(name, FROM);
  const crew = await startCrew(scenery, rancherController);
  await stage.start(jobRunner(endOf(scenery, crew), truth.runs));
  await stage.waitUntil(60);
  await stage.create(cattlePlans, k3sPlan('server'));
}

/** Annotations of a Plan of Rancher that other software reads, too, have the prefix of its own. */
const ROLLS_BACK = controlKey(ROLLS_BACK_ANNOTATION, CONTROL_PREFIX);
const ROLLS_BACK_TO = controlKey(ROLLS_BACK_TO_ANNOTATION, CONTROL_PREFIX);

/** The last hash with which each plan was resolved. Each new hash begins a run, also one that the plan had before. */
const HASHES = new WeakMap<Scenery, Map<string, string>>();

async function witness(scenery: Scenery): Promise<void> {
  const { stage, truth } = scenery;
  const now = stage.clock.now();
  truth.noticeUpgrades(now);
  const hashes = HASHES.get(scenery) ?? new Map<string, string>();
  HASHES.set(scenery, hashes);
  for (const { metadata, spec, status } of (await stage.client.listAll(cattlePlans)).items) {
    const { uid = '', annotations = {} } = metadata;
    if (annotations[ROLLS_BACK] !== undefined && !truth.rollBacks.has(uid))
      truth.rollBacks.set(uid, now);
    // An edit to another version ends the roll-back.
    if (spec?.version !== annotations[ROLLS_BACK_TO]) truth.rollBacks.delete(uid);
    const hash = status?.latestHash;
    if (!hash || hashes.get(uid) === hash) continue;
    hashes.set(uid, hash);
    truth.admitted.set(uid, (truth.admitted.get(uid) ?? 0) + 1);
  }
}

function edit(name: string, spec: Parameters<typeof k3sPlan>[1]): Operation {
  return {
    name,
    act: async ({ stage }) => {
      const plan = await ifFound(stage.client.get(cattlePlans, NAME, FLAGS));
      const options = { ...FLAGS, type: 'merge' } as const;
      if (plan) await stage.client.patch(cattlePlans, NAME, { spec }, options);
    },
  };
}

const BY_HAND = 'v1.36.4+k3s1';
/** An image that can install an older version, which the image of a K3s Plan refuses. */
const ANY_K3S = 'registry.example.com/any-k3s';

const OPERATIONS: readonly Operation[] = [
  command('pause', 'pause', '--plan', PLAN),
  command('resume', 'resume', '--plan', PLAN),
  command('abort', 'abort', '--plan', PLAN, '--reason', 'bad release'),
  command('hold s1', 'hold', 's1', '--reason', 'disk'),
  command('unhold s1', 'unhold', 's1'),
  command('retry s1', 'retry', 's1'),
  command('retry the skipped', 'retry', '--skipped', '--plan', PLAN),
  command('approve wave 2', 'approve', PLAN, '--wave', '2'),
  command('accept the check', 'accept', '--plan', PLAN, '--check', 'shop', '--reason', 'known'),
  command('roll back', 'rollback', PLAN, '--image', ANY_K3S, '--reason', 'bad', '--yes'),
  ...crewOperations(SERVERS),
  ...policyOperations('s1'),
  edit('the version is edited', { version: 'v1.36.4+k3s1' }),
  edit('the version is edited back', { version: 'v1.36.3+k3s1' }),
  edit('the image is edited', { upgrade: { image: 'mirror.example.com/k3s-upgrade' } }),
  edit('the Plan allows two nodes at a time', { concurrency: 2 }),
  {
    name: 'the plan is deleted',
    act: async ({ stage }) => {
      await ifFound(stage.client.delete(cattlePlans, NAME, FLAGS));
    },
  },
  {
    name: 'the plan is applied again',
    act: async ({ stage }) => {
      const found = await ifFound(stage.client.get(cattlePlans, NAME, FLAGS));
      if (!found) await stage.create(cattlePlans, k3sPlan('server'));
    },
  },
  lose('s2'),
  upgradeByHand('s2', BY_HAND),
];

export const RANCHER_LAB: Lab = {
  dialect: 'cattle',
  hasRollBacks: true,
  seeds: [1, 25],
  open,
  witness,
  meanings: { IMAGE: ANY_K3S },
  annotate: async ({ stage }, annotations) => {
    const options = { ...FLAGS, type: 'merge' } as const;
    await stage.client.patch(cattlePlans, NAME, { metadata: { annotations } }, options);
  },
  operations: OPERATIONS,
  // A Plan may spell the version as a tag of an image, which has no plus.
  spelled: (version) => version.replace('-k3s', '+k3s'),
};
