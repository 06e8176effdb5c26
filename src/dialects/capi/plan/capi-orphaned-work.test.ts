/** Proves how a node is cleaned up after somebody removes its request while it is in progress. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { buildMachineUpdate } from '../../../../test/support/builders/machine-updates.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { MachineScene } from '../../../../test/support/capi/machine-scene.ts';
import { OwnerScene } from '../../../../test/support/capi/owner-scene.ts';
import { CORDON_ANNOTATION, PENDING_TAINT } from '../../../drain/cordon-marks.ts';
import { annotated, type Node, nodes } from '../../../kube/resources.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { orphanedPlans } from './capi-orphaned-work.ts';
import { recordOf, UPDATE_ANNOTATION, updateOn } from './machine-update.ts';

/** Brings a node to this status and cordons it for its request. Then removes the request. */
async function orphanAt(scene: MachineScene, name: string, status: string): Promise<void> {
  await scene.ask(name);
  await scene.lead(name);
  scene.report(name, status);
  const uid = updateOn(scene.node(name))?.uid;
  scene.api.change(nodes, name, (node) => ({
    ...annotated(node, { [CORDON_ANNOTATION]: `${uid}/x/Machine` }),
    spec: { ...node.spec, unschedulable: true },
  }));
  scene.api.change(nodes, name, withoutRequest);
}

async function leadUntilCalm(scene: MachineScene, name: string): Promise<void> {
  for (let calls = -1; calls < scene.api.calls.length; ) {
    calls = scene.api.calls.length;
    await scene.lead(name);
  }
}

const statusOf = (node: Node): string | undefined =>
  decodeSignal(node.metadata.annotations)?.status?.status;
const cordonOf = ({ metadata, spec }: Node): unknown => [
  metadata.annotations?.[CORDON_ANNOTATION],
  spec?.unschedulable,
];
const FREE = [undefined, undefined];

test('before the service is touched the signal ends, and the cordon goes', async () => {
  const scene = new MachineScene(['w1']);
  await orphanAt(scene, 'w1', 'Cordoning');
  await leadUntilCalm(scene, 'w1');
  expect([statusOf(scene.node('w1')), cordonOf(scene.node('w1'))]).toEqual(['Failed', FREE]);
  expect(orphanedPlans(buildWorld([], [scene.node('w1')]))).toEqual([]);
});

test('later the node ends its work first, then it is uncordoned, and only then the answer is "done"', async () => {
  const scene = new MachineScene(['w1']);
  await orphanAt(scene, 'w1', 'Restart');
  scene.kubelet('w1', 'v1.35.1');
  await leadUntilCalm(scene, 'w1');
  expect(scene.node('w1').spec?.unschedulable).toBe(true);
  expect((await scene.ask('w1')).message).toContain(
    'cleaning up an earlier update of node w1, whose request was removed',
  );
  scene.report('w1', 'UnCordoning');
  await leadUntilCalm(scene, 'w1');
  scene.report('w1', 'Completed');
  await leadUntilCalm(scene, 'w1');
  expect(cordonOf(scene.node('w1'))).toEqual(FREE);
  expect(await scene.ask('w1')).toMatchObject({ status: 'Success', retryAfterSeconds: 0 });
});

test('the cordon of an earlier request goes once the later one has failed and nothing is at work', async () => {
  const scene = new MachineScene(['w1']);
  scene.policy = {
    ...scene.policy,
    stepDeadlines: { ...scene.policy.stepDeadlines, answer: 1_000 },
  };
  await orphanAt(scene, 'w1', 'Failed');
  scene.want('w1', 'v1.35.2');
  await scene.ask('w1', 'v1.35.2');
  await scene.lead('w1');
  scene.report('w1', 'ApplyingUpdate');
  expect(orphanedPlans(buildWorld([], [scene.node('w1')]))).toEqual([]);
  scene.report('w1', 'Failed');
  await leadUntilCalm(scene, 'w1');
  expect(cordonOf(scene.node('w1'))).toEqual(FREE);
});

test('a controller that still works keeps the next one waiting', async () => {
  const scene = new MachineScene(['c1', 'c2'], 'controller');
  await orphanAt(scene, 'c1', 'Restart');
  await scene.ask('c2');
  await scene.lead('c2');
  expect(decodeSignal(scene.node('c2').metadata.annotations)).toBeUndefined();
  scene.report('c1', 'Completed');
  await scene.lead('c2');
  expect(decodeSignal(scene.node('c2').metadata.annotations)).toBeDefined();
});

test.each([
  ['of a removed request', 'Machine.gone', 1],
  ['of another dialect', 'Plan.gone', 0],
])('a taint %s', (_, value, left) => {
  const node: Node = { metadata: { name: 'w1' }, spec: { taints: [{ ...PENDING_TAINT, value }] } };
  expect(orphanedPlans(buildWorld([], [node]))).toHaveLength(left);
});

test('a Node that Cluster API has not chosen yet keeps the taint of its plan as long as the plan exists', async () => {
  const scene = new OwnerScene();
  await scene.chosen('w1');
  const value = `MachineDeployment.${updateOn(scene.node('w1'))?.owner?.rollout}`;
  scene.api.change(nodes, 'w2', (node) => ({
    ...node,
    spec: { ...node.spec, taints: [{ ...PENDING_TAINT, value }] },
  }));
  const w1 = scene.node('w1');
  const w2 = scene.node('w2');
  const orphansAmong = (...all: Node[]) =>
    orphanedPlans(buildWorld([], all)).map(({ plan }) => plan.metadata.name);
  expect(orphansAmong(w1, w2)).toEqual([]);
  expect(orphansAmong(w2)).toEqual(['w2']);
  scene.kubelet('w2', 'v1.35.1');
  expect(orphansAmong(w1, scene.node('w2'))).toEqual(['w2']);
});

function withoutRequest(node: Node): Node {
  const { [UPDATE_ANNOTATION]: _request, ...annotations } = node.metadata.annotations ?? {};
  return { ...node, metadata: { ...node.metadata, annotations } };
}

test('what each Node says is read once, however many plans ask: all Nodes that were updated once are plans', async () => {
  const scene = new MachineScene(['w1', 'w2']);
  for (const name of ['w1', 'w2']) await scene.ask(name).then(async () => await scene.lead(name));
  const seen = [scene.node('w1'), scene.node('w2')];
  const readAll = (): unknown[] => {
    orphanedPlans(buildWorld([], seen));
    return seen.map(
      (node) => recordOf(node, { ...buildMachineUpdate(), ...updateOn(node) })?.phase,
    );
  };
  expect(readAll()).toEqual(['running', 'running']);
  const parse = vi.spyOn(JSON, 'parse');
  onTestFinished(() => parse.mockRestore());
  readAll();
  expect(parse).not.toHaveBeenCalled();
});

test('what is left on all Nodes is found once for each list of them, however many plans ask', async () => {
  const scene = new MachineScene(['w1']);
  await scene.ask('w1').then(async () => await scene.lead('w1'));
  const all = [withoutRequest(scene.node('w1'))];
  const world = { ...buildWorld([], []), list: () => all as never[] };
  const looks = vi.spyOn(all, 'flatMap');
  const first = orphanedPlans(world);
  const second = orphanedPlans(world);
  expect(second).toBe(first);
  expect(looks).toHaveBeenCalledTimes(1);
});
