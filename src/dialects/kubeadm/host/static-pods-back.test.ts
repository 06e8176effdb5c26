/** Proves when the static pods of a host are rolled back, and what is reported about it. */
import { expect, test } from 'vitest';
import {
  type Answer,
  node,
  rejecting,
  hostStepsRig as rig,
  VERSION,
} from '../../../../test/support/kubeadm/host-steps-rig.ts';
import type { Pod } from '../../../kube/resources.ts';
import { wholeScript } from './filled-script.ts';
import type { HostStepsParts } from './host-steps.ts';
import { rollBackStaticPods } from './static-pods-back.ts';
import { STATIC_PODS } from './verify.ts';

const OLD = 'v1.36.2';

function pod(component: string, version: string, status: 'True' | 'False'): Pod {
  return {
    metadata: { name: `${component}-cp1`, labels: { component } },
    spec: {
      nodeName: 'cp1',
      containers: [{ name: component, image: `r/${component}:${version}` }],
    },
    status: { conditions: [{ type: 'Ready', status }] },
  };
}

interface Scene {
  /** The result of the script that rolls the static pods back. */
  readonly back?: Answer;
  readonly readyz?: Answer;
  readonly facts?: string;
  /** Returns the static pods that are not ready at this version. */
  readonly broken?: (version: string) => readonly string[];
  readonly more?: Partial<HostStepsParts>;
}

async function rolledBack(scene: Scene) {
  const { back = { stdout: `kube-apiserver ${OLD}\n` }, broken = () => [], facts = '' } = scene;
  let version = VERSION;
  const ran: string[] = [];
  const answer = (script: string): Answer => {
    if (script.includes('static_pods_back "$ROLLOUT"')) {
      ran.push('back');
      if (!(back instanceof Error) && (back.code ?? 0) === 0) version = OLD;
      return back;
    }
    if (script.endsWith(wholeScript('readyz.sh'))) return scene.readyz ?? { stdout: '200\n' };
    const images = STATIC_PODS.map((name) => `image.${name}=r/${name}:${version}`);
    return { stdout: [...images, facts].join('\n') };
  };
  const pods = async (): Promise<Pod[]> =>
    await Promise.resolve(
      STATIC_PODS.map((name) =>
        pod(name, version, broken(version).includes(name) ? 'False' : 'True'),
      ),
    );
  const made = rig(answer, { pods, ...scene.more });
  return { ...made, ran, said: await made.clock.runUntil(rollBackStaticPods(made.on)) };
}

const ofNew = (version: string): string[] => (version === VERSION ? ['kube-scheduler'] : []);
const AWAY = { node: rejecting, pods: rejecting };

test('a static pod that is not ready: all go back, and are ready', async () => {
  const { said, warnings } = await rolledBack({ broken: ofNew });
  expect(said).toBe(`; static pods rolled back: kube-apiserver ${OLD}; they are ready`);
  expect(warnings()).toEqual(['static pods do not work; rolling back']);
});

test('those that are not ready afterwards either are named, after two minutes', async () => {
  const { said, clock } = await rolledBack({ broken: () => ['kube-scheduler'] });
  expect(said).toBe(
    `; static pods rolled back: kube-apiserver ${OLD}; but they are not ready: kube-scheduler: its pod is not ready; see kubectl -n kube-system logs kube-scheduler-cp1`,
  );
  expect(clock.monotonic()).toBe(120_000);
});

test('why they stay is told', async () => {
  const { said } = await rolledBack({ broken: ofNew, back: { code: 1, stdout: 'a reason\n' } });
  expect(said).toBe('; static pods stay as they are: a reason');
});

test.each<[string, Scene]>([
  ['all static pods are ready', {}],
  ['the kubelet does not run', { broken: ofNew, more: { node: notReady } }],
  ['kubeadm did not run', { broken: ofNew, more: { parts: ['kubelet'] } }],
  ['the host is a worker', { broken: ofNew, more: { host: { name: 'w1', role: 'worker' } } }],
  ['no API server answers, but the one of this host is ready', { more: AWAY }],
  [
    'no API server answers, and the kubelet crashes',
    { more: AWAY, readyz: { code: 1 }, facts: 'kubeletCrashes=3 E1' },
  ],
  ['nothing can be reached', { more: AWAY, readyz: new Error('no route') }],
])('nothing goes back if %s', async (_why, scene) => {
  const { said, ran } = await rolledBack(scene);
  expect([said, ran]).toEqual(['', []]);
});

test.each<[string, Answer]>([
  ['does not listen', { code: 1, stdout: 'connection refused' }],
  ['is not ready', { stdout: '500\n' }],
])('an API server that %s goes back if no other answers', async (_what, readyz) => {
  let isAway = true;
  const { said } = await rolledBack({
    readyz,
    more: {
      node: async () => {
        if (!isAway) return node(VERSION);
        isAway = false;
        return await rejecting();
      },
    },
  });
  expect(said).toBe(`; static pods rolled back: kube-apiserver ${OLD}; they are ready`);
});

test('a roll-back that Refit itself ended has not failed', async () => {
  const { on, ended, outcome } = rig((script) => {
    if (script.includes('static_pods_back "$ROLLOUT"')) ended.abort(new Error('stopped'));
    return {};
  }, {});
  expect(await outcome(rollBackStaticPods(on))).toBe('stopped');
});

async function notReady() {
  return await Promise.resolve(node(VERSION, '', 'False'));
}
