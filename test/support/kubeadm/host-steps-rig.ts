/**
 * The parts that the steps on a host get in a test: a shell that answers scripts, a clock, and a log that can be read.
 */
import type { EtcdAnswer, EtcdMember } from '../../../src/dialects/kubeadm/host/etcd.ts';
import type { Host } from '../../../src/dialects/kubeadm/host/host.ts';
import type { HostStepsParts } from '../../../src/dialects/kubeadm/host/host-steps.ts';
import type { Condition, Node } from '../../../src/kube/resources.ts';
import type { ShellResult } from '../../../src/util/run-program.ts';
import { buildLog } from '../builders/logs.ts';
import { FakeClock } from '../clock/fake-clock.ts';

export const VERSION = 'v1.36.3';
const HOST: Host = { name: 'cp1', role: 'controlPlane' };
export const member = (id: string, more: Partial<EtcdMember> = {}): EtcdMember => ({
  cluster: '1',
  id,
  leader: '11',
  members: ['10', '11'].map((ID) => ({ ID, name: `etcd-${ID}`, isLearner: false })),
  alarms: [],
  ...more,
});
export const answers = (
  own: EtcdAnswer,
  other: EtcdAnswer = member('11'),
): Map<string, EtcdAnswer> =>
  new Map([
    ['cp1', own],
    ['cp2', other],
  ]);

export type Answer = Partial<ShellResult> | Error;

export function node(
  kubeletVersion: string,
  runtime = '',
  ready: Condition['status'] = 'True',
): Node {
  return {
    metadata: { name: 'cp1' },
    status: {
      nodeInfo: { kubeletVersion, containerRuntimeVersion: runtime },
      conditions: [{ type: 'Ready', status: ready }],
    },
  };
}

/** `shell` returns the answer to a script. `count` is the number of scripts that ran before. */
export function hostStepsRig(
  shell: (script: string, count: number) => Answer = () => ({}),
  more: Partial<HostStepsParts> = {},
) {
  const clock = new FakeClock();
  const scripts: string[] = [];
  const logged: string[] = [];
  const ended = new AbortController();
  const on: HostStepsParts = {
    shells: {
      run: async (_host, script) => {
        const answer = shell(script, scripts.push(script) - 1);
        if (answer instanceof Error) throw answer;
        return await Promise.resolve({ code: 0, stdout: '', stderr: '', ...answer });
      },
    },
    host: HOST,
    parts: ['kubeadm'],
    members: async () => await Promise.resolve(answers(member('10'))),
    node: async () => await Promise.resolve(node(VERSION)),
    pods: async () => await Promise.resolve([]),
    abort: ended.signal,
    clock,
    log: buildLog(logged, 'info'),
    rollout: 'uid',
    version: VERSION,
    ...more,
  };
  return {
    on,
    clock,
    scripts,
    ended,
    warnings: () => logged.map((line) => (JSON.parse(line) as { readonly msg: string }).msg),
    logged,
    /** Resolves with the reason of the rejection; '' if the work resolves. */
    outcome: async (work: Promise<unknown>): Promise<string> =>
      await clock.runUntil(
        work.then(
          () => '',
          (error: unknown) => (error as Error).message,
        ),
      ),
  };
}

export const rejecting = async (): Promise<never> =>
  await Promise.reject(new Error('the API server is away'));
