/** Asks one health check, of any kind. */
import type { KubeClient } from '../kube/client.ts';
import { askDaemonSets } from './ask-daemon-sets.ts';
import { askJobs } from './ask-jobs.ts';
import { askResources } from './ask-resources.ts';
import type { CheckFinding } from './checks.ts';
import type { AskCheck } from './monitor.ts';

export interface AskParts {
  readonly client: KubeClient;
}

/** Returns the function that asks checks. */
export function checkAsker({ client }: AskParts): AskCheck {
  return async (check, nodes, abort, need): Promise<CheckFinding> => {
    switch (check.kind) {
      case 'daemonSets':
        return await askDaemonSets(client, check, nodes, abort);
      case 'resources':
        return await askResources(client, check, abort);
      case 'jobs':
        return await askJobs(client, check, need, abort);
      default:
        throw new Error(`this version of Refit cannot ask checks of the kind ${check.kind}`);
    }
  };
}
