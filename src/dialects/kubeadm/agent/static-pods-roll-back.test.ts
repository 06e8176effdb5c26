/** Proves that the agent of a control-plane host rolls back static pods that do not work. The scripts of the host are simulated. */
import { expect, test } from 'vitest';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import type { ActiveJournal } from '../../../agent/journal.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { silentLogger } from '../../../util/log.ts';
import { STATIC_PODS } from '../host/verify.ts';
import { type KubeadmTools, performOnKubeadm } from './perform-on-kubeadm.ts';

const FROM = 'v1.36.2';
const TO = 'v1.36.3';
const JOURNAL = {
  work: { signal: { created: '2026-11-22T08:00:00Z', command: { version: TO } }, policy: {} },
} as unknown as ActiveJournal;

/** A control plane with external etcd, whose scheduler is ready only at the version before. `failing` names a step that fails. */
function brokenHost(failing = '') {
  let version = TO;
  const ran: string[] = [];
  const node = {
    metadata: { name: 'cp1' },
    status: {
      nodeInfo: { kubeletVersion: TO },
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
          status: component === 'kube-scheduler' && version === TO ? 'False' : 'True',
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
  const stdoutOf = (script: string): string => {
    if (script.includes('static_pods_back "$ROLLOUT"')) {
      ran.push('static-pods-back');
      version = FROM;
      return `kube-scheduler ${FROM}\n`;
    }
    const step = /STEP=\W+(\w+)/.exec(script)?.[1];
    if (step === undefined) return facts();
    ran.push(step);
    return '';
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
      run: async (_host: unknown, script: string) => {
        const stdout = stdoutOf(script);
        const code = failing !== '' && ran.at(-1) === failing ? 1 : 0;
        return await Promise.resolve({ code, stdout, stderr: '' });
      },
    }),
    directory: '/nowhere',
  } as unknown as KubeadmTools;
  const upgrade = async () =>
    await performOnKubeadm({ kind: 'upgrade-host' }, JOURNAL, tools, new AbortController().signal);
  return { ran, upgrade };
}

test('a scheduler that does not become ready: the reason says that the static pods were rolled back', async () => {
  const { ran, upgrade } = brokenHost();
  expect(await upgrade()).toMatchObject({
    ok: false,
    reason: `kube-scheduler: its pod is not ready; see kubectl -n kube-system logs kube-scheduler-cp1; static pods rolled back: kube-scheduler ${FROM}; they are ready`,
  });
  expect(ran).toEqual(['kubeadm', 'kubelet', 'static-pods-back']);
});

test('a kubelet that cannot be replaced: the static pods stay, because they may still restart', async () => {
  const { ran, upgrade } = brokenHost('kubelet');
  expect(await upgrade()).toMatchObject({ ok: false });
  expect(ran).not.toContain('static-pods-back');
});
