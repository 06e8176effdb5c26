/** The custom kinds that Refit installs. CRDs, their documentation and their tests use this list. */

import { planKind } from '../../src/api/autopilot/plan.ts';
import { updateConfigKind } from '../../src/api/autopilot/update-config.ts';
import { cattlePlanKind } from '../../src/api/cattle/plan.ts';
import type { CustomKind } from '../../src/api/crd.ts';
import { statusShardKind } from '../../src/api/refit/status-shard.ts';
import { updaterSetKind } from '../../src/api/refit/updater-set.ts';
import { upgradePolicyKind } from '../../src/api/refit/upgrade-policy.ts';
import { controlNodeKind } from './control-node.ts';

export const CUSTOM_KINDS: readonly CustomKind[] = [
  controlNodeKind,
  planKind,
  updateConfigKind,
  cattlePlanKind,
  upgradePolicyKind,
  statusShardKind,
  updaterSetKind,
];
