/** Checks the UpgradePolicies on which the next upgrade depends, and the locks of the tools that they name. */
import type { UpgradePolicy } from '../../../api/refit/upgrade-policy.ts';
import { lookAtLocks } from '../../../coordination/lock-look.ts';
import type { ToolName } from '../../../coordination/tool.ts';
import { readPolicy } from '../../../engine/policy/read-policy.ts';
import { hasReferences, unresolvedOf, wasResolved } from '../../../engine/policy/references.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { trueCondition } from '../../../kube/resources.ts';
import { type ReadResult } from '../../../ready/asking.ts';
import type { Check } from '../../../ready/context.ts';
import type { FoundBy } from '../../../ready/finding.ts';
import type { Clock } from '../../../util/clock.ts';

interface PolicyGroundParts {
  readonly policies: ReadResult<readonly UpgradePolicy[]>;
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly abort: AbortSignal;
}

/** Returns a check of all policies. It sends no request to the servers that the policies name. */
export function policyGround({ policies, ...parts }: PolicyGroundParts): Check {
  return async () => {
    // The check of health says already that the policies cannot be read.
    if (policies.kind === 'unknown') return [];
    const tools = policies.value.flatMap((policy) => readPolicy(policy).coordinate ?? []);
    return [
      ...policies.value.flatMap(findingsOf),
      ...(await lockFindings([...new Set(tools)], parts)),
    ];
  };
}

function findingsOf(policy: UpgradePolicy): FoundBy[] {
  const object = `UpgradePolicy ${policy.metadata.name}`;
  const read = readPolicy(policy);
  // These messages name the policy.
  if (read.problems.length > 0)
    return read.problems.map(({ message }) => ({
      state: 'blocker',
      message,
      cure: 'correct the policy: the plans that it covers do not start before',
    }));
  const findings: FoundBy[] = [];
  const conflict = trueCondition(policy.status?.conditions, 'Conflicted');
  if (conflict !== undefined)
    findings.push({
      state: 'warning',
      object,
      message: `a part of it is ${conflict.message ?? 'ignored'}`,
      cure: 'remove the entry from one of both policies',
    });
  if (!hasReferences(read)) return findings;
  const { hooks = [], health: { checks = [] } = {} } = read;
  const unresolved = unresolvedOf(policy);
  if (unresolved !== undefined)
    findings.push({
      // A message that nobody gets stops no upgrade, but a hook or a health check that cannot run does.
      state: hooks.length + checks.length > 0 ? 'blocker' : 'warning',
      object,
      message: `its controller cannot use what it refers to: ${unresolved}`,
      cure: 'correct the name in the policy, or create what is missing',
    });
  else if (!wasResolved(policy))
    findings.push({
      state: 'unknown',
      object,
      message:
        'whether its Secrets, Jobs and tools can be used: no controller has looked at this generation of it',
      cure: 'start the controller of the plans, which writes the condition ResolvedRefs',
    });
  return findings;
}

/** Resolves with the locks that other tools hold now. The upgrade would wait for them. */
async function lockFindings(
  tools: readonly ToolName[],
  parts: Omit<PolicyGroundParts, 'policies'>,
): Promise<FoundBy[]> {
  if (tools.length === 0) return [];
  const { known, unseen } = await lookAtLocks(parts, '', tools, parts.abort);
  const held = known.flatMap(({ others }) =>
    others.map(
      ({ message, ends }): FoundBy => ({
        state: 'warning',
        message: `no node would start now: ${message}`,
        cure: `wait: this ends when ${ends}`,
      }),
    ),
  );
  return [...held, ...unseen.map((message): FoundBy => ({ state: 'unknown', message }))];
}
