/** What comes after all hosts: MachineDeployments, one after the other. */
import { isBegun, poolVersion, rollPool } from '../../dialects/kubeadm/machine-pools.ts';
import type { Assessment, Survey } from '../../dialects/kubeadm/preflight.ts';
import { guardedClient } from '../../kube/election/write-guard.ts';
import { EventRecorder } from '../../kube/event-recorder.ts';
import type { Check } from '../../kubeadm/verify.ts';
import { table } from '../phrases.ts';
import { underLock } from './run.ts';
import type { KubeadmApplyFlags, KubeadmSession } from './session.ts';

const AGAIN = 'run the same command again';

export function stageLines({ pools = [] }: Survey, { toRoll, request }: Assessment): string[] {
  const open = ', not finished: --upgrade-machine-deployments continues it';
  const stay = pools.map((pool) => `${pool.metadata.name} (${poolVersion(pool)}${isBegun(pool) ? open : ''})`);
  const rows = toRoll.map((pool) => {
    const way = `${poolVersion(pool)} → ${request.version}`;
    return [pool.metadata.name, String(pool.spec.replicas ?? 1), way];
  });
  if (rows.length > 0) return [...table(['MACHINEDEPLOYMENT', 'MACHINES', 'VERSION'], rows), ''];
  return stay.length === 0 ? [] : [`MachineDeployments stay as they are: ${stay.join(', ')}.`];
}

/** The first that fails is the last that is touched. */
export async function afterHosts(
  session: KubeadmSession,
  { leaseDuration }: Pick<KubeadmApplyFlags, 'leaseDuration'>,
  { toRoll, request: { version } }: Assessment,
): Promise<[string, Check[]][]> {
  const { client, clock, log, output } = session;
  return await underLock(session, leaseDuration, async (election, abort) => {
    const events = new EventRecorder({ client, component: 'refit-kubeadm', clock, log });
    const checks: [string, Check[]][] = [];
    let failed: string | undefined;
    for (const pool of toRoll) {
      const name = `MachineDeployment ${pool.metadata.name}`;
      const tell = (message: string, type: 'Normal' | 'Warning' = 'Normal'): void => {
        output.write(`${name} ${message}.\n`);
        events.record(pool, { type, reason: 'MachinesUpgrading', message: `It ${message}` });
      };
      const tools = { client, writer: guardedClient(client, election, clock), clock, tell, abort };
      const problem = failed ? `not started, since ${failed} failed` : await rollPool(tools, pool, version);
      if (problem !== undefined) tell(`failed: ${problem}`, 'Warning');
      if (problem !== undefined) failed ??= name;
      const check = { component: 'kubelet', found: problem ?? version };
      checks.push([name, [problem === undefined ? check : { ...check, cure: AGAIN }]]);
    }
    await events.flush();
    return checks;
  });
}
