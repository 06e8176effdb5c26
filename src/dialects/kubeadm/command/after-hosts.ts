/** Applies addons and then upgrades MachineDeployments, one after the other, when all hosts are upgraded. */

import { table } from '../../../cli/phrases.ts';
import { guardedClient } from '../../../kube/election/write-guard.ts';
import { eventRecorder } from '../../../kube/event-recorder.ts';
import { describeProblem } from '../../../kube/status-error.ts';
import type { Check } from '../host/verify.ts';
import { applyAddon } from '../plan/addons.ts';
import { isBegun, poolVersion, rollPool } from '../plan/machine-pools.ts';
import type { HostAssessment, Survey } from '../plan/preflight.ts';
import { underLock } from './run-upgrade.ts';
import type { ApplySession } from './upgrade-session.ts';

const AGAIN = 'run the same command again';

export function stageLines(
  { pools = [] }: Survey,
  { toApply, toRoll, request }: HostAssessment,
  width = Number.POSITIVE_INFINITY,
): string[] {
  const addons = toApply.flatMap(({ name, changes }) =>
    changes.map((line) => `addon ${name}: ${line}`),
  );
  const open = ', not finished: --upgrade-machine-deployments continues it';
  const stay = pools.map(
    (pool) => `${pool.metadata.name} (${poolVersion(pool)}${isBegun(pool) ? open : ''})`,
  );
  const rows = toRoll.map((pool) => {
    const way = `${poolVersion(pool)} → ${request.version}`;
    return [pool.metadata.name, String(pool.spec.replicas ?? 1), way];
  });
  if (rows.length > 0)
    return [...addons, ...table(['MACHINEDEPLOYMENT', 'MACHINES', 'VERSION'], rows, width), ''];
  return stay.length === 0
    ? addons
    : [...addons, `MachineDeployments stay as they are: ${stay.join(', ')}.`];
}

/**
 * Applies all addons, and then upgrades the MachineDeployments. If an addon fails, the other addons are still applied, but no
 * MachineDeployment is upgraded.
 */
export async function afterHosts(
  session: ApplySession,
  { toApply, toRoll, request: { version } }: HostAssessment,
) {
  const { client, clock, log, output, flags, abort } = session;
  if (toApply.length + toRoll.length === 0) return [];
  return await underLock(session, async (election) => {
    const events = eventRecorder({ client, component: 'refit-kubeadm', clock, log });
    const writer = guardedClient(client, election, clock);
    const tools = { client, writer, clock, force: flags.forceConflicts, abort };
    const checks: [string, Check[]][] = [];
    const end = (name: string, component: string, found: string, problem?: string): void => {
      output.write(`${name} ${problem === undefined ? 'is done' : `failed: ${problem}`}.\n`);
      checks.push([
        name,
        [problem === undefined ? { component, found } : { component, found: problem, cure: AGAIN }],
      ]);
    };
    for (const addon of toApply) {
      const problem = await applyAddon(tools, addon).catch((error: unknown) => {
        abort.throwIfAborted();
        return describeProblem(error).message;
      });
      end(`addon ${addon.name}`, 'objects', `${addon.objects.length} applied`, problem);
    }
    for (const pool of toRoll) {
      const name = `MachineDeployment ${pool.metadata.name}`;
      const tell = (message: string): void => {
        output.write(`${name} ${message}.\n`);
        events.record(pool, {
          type: 'Normal',
          reason: 'MachinesUpgrading',
          message: `It ${message}`,
        });
      };
      const [failed] = checks.find(([, [check]]) => check?.cure !== undefined) ?? [];
      const rolled = failed
        ? `not started, since ${failed} failed`
        : rollPool({ ...tools, tell }, pool, version);
      const problem = await rolled;
      if (problem)
        events.record(pool, { type: 'Warning', reason: 'MachinesUpgrading', message: problem });
      end(name, 'kubelet', version, problem);
    }
    await events.flush();
    return checks;
  });
}
