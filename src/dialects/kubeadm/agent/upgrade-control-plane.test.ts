/**
 * Proves when the agent of a control-plane host waits for etcd, and what it rolls back: static pods that do not work, and a
 * kubelet that it replaced. The scripts of the host are simulated.
 */
import { expect, test } from 'vitest';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import type { ActiveJournal } from '../../../agent/journal.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { silentLogger } from '../../../util/log.ts';
import { etcdScript } from '../host/etcd.ts';
import { rollBackScript } from '../host/scripts.ts';
import { STATIC_PODS } from '../host/verify.ts';
import { type KubeadmTools, performOnKubeadm } from './perform-on-kubeadm.ts';

const FROM = 'v1.36.2';
const TO = 'v1.36.3';
const JOURNAL = {
  work: { signal: { created: '2026-11-22T08:00:00Z', command: { version: TO } }, policy: {} },
} as unknown as ActiveJournal;

const ROLL_BACK = rollBackScript(`20261122T080000Z-${TO}`);
const NO_ETCD = 'etcd: the member on this host does not answer: curl: (28) timed out';

interface Faults {
  /** The step that fails. */
  readonly failing?: 'kubeadm' | 'kubelet';
  /** The component whose pod is ready only at the version before the upgrade. */
  readonly broken?: string;
  /** The version that the Node reports. */
  readonly reported?: string;
  /** Reports whether the etcd member gives no answer after the steps `ran`. */
  readonly isEtcdDown?: (ran: readonly string[]) => boolean;
}

/** Returns a control-plane host with external etcd. */
function hostWith({ failing, broken, reported = TO, isEtcdDown = () => false }: Faults) {
  let version = TO;
  const ran: string[] = [];
  const node = {
    metadata: { name: 'cp1' },
    status: {
      nodeInfo: { kubeletVersion: reported },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  };
  const pod = (component: string) => ({
    metadata: { name: `${component}-cp1`, labels: { component } },
    spec: {
      nodeName: 'cp1',
      containers: [{ name: component, image: `r/${component}:${version}` }],
    },
    status: {
      conditions: [
        {
          type: 'Ready',
          status: component === broken && version === TO ? 'False' : 'True',
        },
      ],
    },
  });
  const facts = (): string =>
    [
      `kubeadm=${TO}`,
      `kubelet=${TO}`,
      ...STATIC_PODS.map((each) => `image.${each}=r/${each}:${version}`),
    ].join('\n');
  const answerOf = (script: string): { code: number; stdout: string } => {
    if (script === etcdScript())
      return { code: 0, stdout: isEtcdDown(ran) ? 'etcd=curl: (28) timed out\n' : '' };
    if (script === ROLL_BACK) {
      ran.push('roll-back');
      return { code: 0, stdout: `Kubernetes ${FROM}\n` };
    }
    if (script.includes('static_pods_back "$ROLLOUT"')) {
      ran.push('static-pods-back');
      version = FROM;
      return { code: 0, stdout: `kube-scheduler ${FROM}\n` };
    }
    const step = /STEP=\W+(\w+)/.exec(script)?.[1];
    if (step === undefined) return { code: 0, stdout: facts() };
    ran.push(step);
    return { code: step === failing ? 1 : 0, stdout: '' };
  };
  const tools = {
    clock: new FakeClock(undefined, { skipsWaits: true }),
    random: () => 0,
    log: silentLogger,
    client: {
      get: async () => await Promise.resolve(node),
      listAll: async () => await Promise.resolve({ items: STATIC_PODS.map(pod) }),
    } as unknown as KubeClient,
    host: { name: 'cp1', role: 'controlPlane' },
    kubeadm: {},
    limits: {},
    shells: () => ({
      run: async (_host: unknown, script: string) =>
        await Promise.resolve({ ...answerOf(script), stderr: '' }),
    }),
    directory: '/nowhere',
  } as unknown as KubeadmTools;
  const upgrade = async () =>
    await performOnKubeadm({ kind: 'upgrade-host' }, JOURNAL, tools, new AbortController().signal);
  return { ran, upgrade };
}

test('a scheduler that does not become ready: the reason says that the static pods were rolled back', async () => {
  const { ran, upgrade } = hostWith({ broken: 'kube-scheduler' });
  expect(await upgrade()).toMatchObject({
    ok: false,
    reason: `kube-scheduler: its pod is not ready; see kubectl -n kube-system logs kube-scheduler-cp1; static pods rolled back: kube-scheduler ${FROM}; they are ready`,
  });
  expect(ran).toEqual(['kubeadm', 'kubelet', 'static-pods-back']);
});

test('a kubelet that cannot be replaced goes back alone: static pods stay, because they may still restart', async () => {
  const { ran, upgrade } = hostWith({
    failing: 'kubelet',
    broken: 'kube-scheduler',
    reported: FROM,
  });
  expect(await upgrade()).toMatchObject({
    ok: false,
    reason: `step kubelet failed with exit code 1: no output; rolled back: Kubernetes ${FROM} was put back and started; check that the Node is Ready`,
  });
  expect(ran).toEqual(['kubeadm', 'kubelet', 'roll-back']);
});

test('where kubeadm fails, nothing is rolled back, because the kubelet is untouched', async () => {
  const { ran, upgrade } = hostWith({ failing: 'kubeadm', reported: FROM });
  expect(await upgrade()).toMatchObject({
    ok: false,
    reason: 'step kubeadm failed with exit code 1: no output',
  });
  expect(ran).toEqual(['kubeadm']);
});

test('an etcd member that does not answer: nothing is changed', async () => {
  const { ran, upgrade } = hostWith({ isEtcdDown: () => true });
  expect(await upgrade()).toMatchObject({ ok: false, reason: NO_ETCD });
  expect(ran).toEqual([]);
});

test('an etcd member that does not come back after the upgrade: the host counts as failed, and keeps what works', async () => {
  const { ran, upgrade } = hostWith({ isEtcdDown: (before) => before.includes('kubelet') });
  expect(await upgrade()).toMatchObject({ ok: false, reason: NO_ETCD });
  expect(ran).toEqual(['kubeadm', 'kubelet']);
});

test('an etcd member that answers at the third request, before and after the upgrade, is waited for', async () => {
  const asked: string[] = [];
  const isEtcdDown = (ran: readonly string[]): boolean => {
    const when = ran.includes('kubelet') ? 'after' : 'before';
    asked.push(when);
    return asked.filter((each) => each === when).length < 3;
  };
  const { upgrade } = hostWith({ isEtcdDown });
  expect(await upgrade()).toEqual({ ok: true });
  expect(asked).toEqual([...Array(3).fill('before'), ...Array(3).fill('after')]);
});
