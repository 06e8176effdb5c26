/** Asks each health check of the policies once, and whether an alert that stands in the way of upgrades fires. */
import type { CheckFinding } from '../../health/checks.ts';
import { messageOf } from '../../util/errors.ts';
import { counted } from '../../util/phrases.ts';
import type { Check, PolicyCheck, ReadyContext } from '../context.ts';
import type { FoundBy } from '../finding.ts';

/** An alert with this label must not fire while an upgrade starts, whatever the policies say. */
const PRECHECK = { refit_precheck: 'true' };

export const checkHealth: Check = async (context) => {
  const { policyChecks } = context;
  if (policyChecks.kind === 'unknown') return [{ state: 'unknown', message: policyChecks.why }];
  const checks = policyChecks.value;
  if (checks.length === 0) return [{ state: 'ok', message: 'no UpgradePolicy has a health check' }];
  const found = await Promise.all(
    [...checks, ...precheckAlerts(checks)].map(async (each) => await askOne(context, each)),
  );
  const findings = found.flat();
  if (findings.length > 0) return findings;
  return [
    { state: 'ok', message: `${counted(checks.length, 'health check')} of the policies pass` },
  ];
};

/** Returns a check for each server of alerts that the policies name. */
function precheckAlerts(checks: readonly PolicyCheck[]): PolicyCheck[] {
  const servers = new Map<string, PolicyCheck>();
  for (const { policy, check } of checks)
    if (check.kind === 'alerts')
      servers.getOrInsert(check.url, {
        policy,
        check: { ...check, name: 'refit_precheck', labels: PRECHECK },
      });
  return [...servers.values()];
}

async function askOne(
  { askCheck, abortIfAsked }: ReadyContext,
  { policy, check }: PolicyCheck,
): Promise<FoundBy[]> {
  const object = `UpgradePolicy ${policy}`;
  const what = `health check ${check.name}`;
  if (check.kind === 'readiness') return [];
  if (check.kind === 'jobs')
    return [
      { state: 'unknown', object, message: `${what} runs a Job, and Refit creates nothing here` },
    ];
  try {
    return stateOf(await askCheck(check), `${what}: `, object);
  } catch (error) {
    abortIfAsked();
    return [{ state: 'unknown', object, message: `${what}: ${messageOf(error)}` }];
  }
}

function stateOf({ state, message }: CheckFinding, prefix: string, object: string): FoundBy[] {
  if (state === 'passing') return [];
  const cure = 'repair what the check is about, or change the check';
  return state === 'failing'
    ? [{ state: 'blocker', object, message: `${prefix}${message}`, cure }]
    : [{ state: 'unknown', object, message: `${prefix}${message}` }];
}
