/** The custom kinds that Refit installs. CRDs, their documentation and their tests use this list. */
import { controlNodeKind } from './autopilot/control-node.ts';
import { planKind } from './autopilot/plan.ts';
import { updateConfigKind } from './autopilot/update-config.ts';
import { cattlePlanKind } from './cattle/plan.ts';
import type { CustomKind } from './crd.ts';
import { statusShardKind } from './refit/status-shard.ts';
import { upgradePolicyKind } from './refit/upgrade-policy.ts';

export const CUSTOM_KINDS: readonly CustomKind[] = [
  controlNodeKind,
  planKind,
  updateConfigKind,
  cattlePlanKind,
  upgradePolicyKind,
  statusShardKind,
];
