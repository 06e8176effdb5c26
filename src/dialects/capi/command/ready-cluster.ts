/** Opens the workload cluster of a Cluster for `refit ready --cluster`. */
import type { WithReadyTarget } from '../../../cli/contract/ready-target.ts';
import { readTargetVersion } from '../../../cli/ready/target-version.ts';
import { connect } from '../../../cli/status/status-session.ts';
import { askingOf } from '../../../ready/asking.ts';
import { RefitError } from '../../../util/errors.ts';
import { readinessOfCluster } from '../plan/readiness.ts';
import { workloadConfigOf } from './workload-cluster.ts';

export const withCluster: WithReadyTarget = async (flags, { abort }, work) => {
  const { cluster, to, namespace = 'default' } = flags;
  if (cluster === undefined || to === undefined)
    throw new RefitError(
      'REFIT_USAGE',
      '--cluster needs the new version, such as --cluster blue --to v1.37',
    );
  const version = readTargetVersion(to);
  using client = await connect(flags, 'refit-ready');
  const config = await workloadConfigOf(client, { cluster, namespace }, abort);
  return await work({
    to: version,
    config,
    // The objects that configure the nodes are in the management cluster.
    readiness: readinessOfCluster(askingOf(client, abort), { cluster, namespace }),
    groundChecks: [],
    policies: [],
  });
};
