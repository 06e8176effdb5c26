/**
 * Scenes with the recordings of k0s: what people see with Refit while the leader and the agents of k0s itself carry out
 * a Plan. No process of Refit runs in them.
 */
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { LEADER_LEASE } from '../../src/dialects/autopilot/leader-lease.ts';
import {
  apiVersionOf,
  type KubeObject,
  type Lease,
  leases,
  nodes,
  type Resource,
} from '../../src/kube/resources.ts';
import { installedVersion } from '../../src/signal/annotations.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { kubernetesPartOf } from '../../src/versions/release-parts.ts';
import { T0 } from '../support/clock/times.ts';
import { type RecordedWrite, recordedWrites } from '../support/recordings.ts';
import { createK0sCluster } from './k0s.ts';
import type { Scene } from './scene.ts';
import { showAll } from './shown.ts';
import type { Stage } from './stage.ts';

/** The second of a scene in which the recording begins. */
const BEGIN = 60;
const TIME = /20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ/g;

/** Plays the recording until this second of it. */
function scene(name: string, recording: string, seconds: number, about: readonly string[]): Scene {
  return {
    name,
    async play(stage) {
      await createK0sCluster(stage, 3, 3);
      for (const resource of [controlNodes, nodes]) await removeAgents(stage, resource);
      await stage.create(leases, leaseOfK0s());
      for (const write of movedWrites(recording)) {
        if (write.t > seconds) break;
        await stage.waitUntil(Math.max(BEGIN + Math.floor(write.t), secondOf(stage)));
        await apply(stage, write);
      }
      await stage.waitUntil(BEGIN + seconds);
      await showAll(stage, plans, about);
    },
  };
}

function secondOf({ clock }: Stage): number {
  return Math.ceil((clock.now() - T0) / 1000);
}

/** The Lease of the leader of k0s, whose identity has 32 hexadecimal digits. */
function leaseOfK0s(): Lease {
  const renewTime = new Date(T0).toISOString().replace('Z', '000Z');
  const times = { leaseDurationSeconds: 3600, acquireTime: renewTime, renewTime };
  return {
    apiVersion: apiVersionOf(leases),
    kind: leases.kind,
    metadata: LEADER_LEASE,
    spec: { holderIdentity: 'a1'.repeat(16), ...times },
  };
}

/** Agents of k0s announce nothing. */
async function removeAgents<T extends KubeObject>(
  { client }: Stage,
  resource: Resource<T>,
): Promise<void> {
  for (const object of (await client.list(resource)).items)
    await client.replace(resource, {
      ...object,
      metadata: { ...object.metadata, annotations: {} },
    });
}

/** Returns the writes of the recording, whose times are moved to the time of the scene. */
function movedWrites(recording: string): RecordedWrite[] {
  const text = JSON.stringify(recordedWrites(recording).filter(({ code }) => code < 300));
  const [first = ''] = text.match(TIME) ?? [];
  const moved = T0 + BEGIN * 1000 - Date.parse(first);
  const inScene = text.replaceAll(TIME, (time) => rfc3339(Date.parse(time) + moved));
  return JSON.parse(inScene) as RecordedWrite[];
}

async function apply(stage: Stage, write: RecordedWrite): Promise<void> {
  const { resource, verb, name, annotations, body } = write;
  if (resource === 'plans' || resource === 'plans/status') return await applyToPlan(stage, write);
  const of: Resource = resource.startsWith('controlnodes') ? controlNodes : nodes;
  const object = (await stage.client.list(of)).items.find(({ metadata }) => metadata.name === name);
  if (object === undefined) return;
  if (verb === 'delete') await stage.client.delete(of, name);
  else if (body !== undefined) await stage.client.patch(of, name, body, { type: patchType(body) });
  else if (annotations) {
    await stage.client.replace(of, { ...object, metadata: { ...object.metadata, annotations } });
    const version = installedVersion(annotations);
    if (version === undefined) return;
    const told =
      of === nodes
        ? { nodeInfo: { kubeletVersion: kubernetesPartOf(version) } }
        : { k0sVersion: version };
    await stage.client.patch(of, name, { status: told }, { type: 'merge', subresource: 'status' });
  }
}

function patchType(body: unknown): 'json' | 'merge' {
  return Array.isArray(body) ? 'json' : 'merge';
}

async function applyToPlan(stage: Stage, write: RecordedWrite): Promise<void> {
  const { resource, verb, name, body } = write;
  const { spec, status } = write as Pick<Plan, 'spec' | 'status'>;
  if (verb === 'delete') return await stage.client.delete(plans, name);
  if (verb === 'create')
    return await stage.create(plans, {
      apiVersion: apiVersionOf(plans),
      kind: plans.kind,
      metadata: { name },
      spec,
    });
  const subresource = resource === 'plans/status' ? ({ subresource: 'status' } as const) : {};
  if (body !== undefined)
    return void (await stage.client.patch(plans, name, body, {
      type: patchType(body),
      ...subresource,
    }));
  const plan = await stage.client.get(plans, name);
  const whole = { ...plan, ...(status ? { status } : {}), ...(status ? {} : { spec }) };
  await stage.client.replace(plans, whole, subresource);
}

const ONE = 'plan-3c3w-concurrent1';
const THREE = 'plan-3w-drain-concurrent3';

export const RECORDED_SCENES: readonly Scene[] = [
  scene('three controllers and three workers, after the signal to the first controller', ONE, 0.1, [
    'c1',
    'w1',
  ]),
  scene('three controllers and three workers, in their middle', ONE, 30, ['c2', 'w1']),
  scene('three controllers and three workers, after 60 seconds', ONE, 60, ['c3', 'w1']),
  scene('three controllers and three workers, done', ONE, 600, ['c1', 'w3']),
  scene('three workers at once, while they are drained', THREE, 5, ['w1', 'w2']),
  scene('three workers at once, done', THREE, 600, ['w1']),
  scene('a download is not found', '03a-download-404', 60, ['w1']),
  scene('a download has another sha256', '03b-wrong-sha', 60, ['w3']),
  scene('two updates in one Plan, while the first one runs', '06-two-k0supdates', 8, ['w1']),
  scene('two updates in one Plan, done', '06-two-k0supdates', 600, ['w1']),
  scene('an administrator has cordoned a worker', '09-admin-cordoned', 600, ['w1']),
  scene('a Plan without commands', '10e-no-commands', 30, []),
  scene('a node of the Plan does not exist', '10f-missing-node', 30, ['w1']),
  scene('a Plan without the platform of its nodes', '10g-missing-platform', 30, ['w1']),
  scene('the id of the Plan changes while it runs', '18a-id-change-midflight', 600, ['w1']),
  scene('a command is added while the Plan runs', '18b-command-added-midflight', 600, ['w1']),
  scene('a node is deleted after its signal', '19-node-deleted-while-sent', 30, ['w3']),
  scene('an API is removed', '15-removed-api', 60, ['w1']),
  scene('an airgap bundle', '05a-airgap-double', 600, ['w1']),
];
