/** Runs all checks of a cluster before an upgrade. */
import { kubeletVersionOf, nodes } from '../kube/resources.ts';
import { messageOf } from '../util/errors.ts';
import { compareVersionTexts } from '../util/version.ts';
import { checkApis } from './checks/apis.ts';
import { checkDrains } from './checks/drains.ts';
import { checkGround } from './checks/ground.ts';
import { checkHealth } from './checks/health.ts';
import { checkOperators } from './checks/operators.ts';
import { checkRoom } from './checks/room.ts';
import { checkSettings } from './checks/settings.ts';
import { checkVersions } from './checks/versions.ts';
import { checkWebhooks } from './checks/webhooks.ts';
import type { Check, ReadyContext } from './context.ts';
import {
  type Accepted,
  CHECK_NAMES,
  type CheckName,
  cleaned,
  cleanText,
  type ReadyReport,
  withAccepted,
} from './finding.ts';

const ALL: Readonly<Record<CheckName, Check>> = {
  versions: checkVersions,
  settings: checkSettings,
  apis: checkApis,
  webhooks: checkWebhooks,
  drains: checkDrains,
  room: checkRoom,
  operators: checkOperators,
  ground: checkGround,
  health: checkHealth,
};

/** Resolves with what all checks found. A check that fails is unknown. Rejects only if the command is interrupted. */
export async function askReadiness(
  context: ReadyContext,
  accepted: Accepted,
): Promise<ReadyReport> {
  const found = await Promise.all(
    CHECK_NAMES.map(async (check) => {
      try {
        return (await ALL[check](context)).map((each) => ({ check, ...each }));
      } catch (error) {
        context.abortIfAsked();
        const message = `the check could not be made: ${messageOf(error)}`;
        return [{ check, state: 'unknown' as const, message }];
      }
    }),
  );
  return {
    to: context.to,
    from: await presentVersions(context),
    findings: withAccepted(found.flat().map(cleaned), accepted),
  };
}

async function presentVersions({ list }: ReadyContext): Promise<string[]> {
  const asked = await list(nodes);
  if (asked.kind === 'unknown') return [];
  const versions = asked.value.flatMap((node) => kubeletVersionOf(node) ?? []);
  return [...new Set(versions.map(cleanText))].toSorted(
    (one, other) => compareVersionTexts(one, other) || 0,
  );
}
