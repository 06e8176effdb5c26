/** What people can do about the update of a Machine of Cluster API. */
import type { PlanRunner } from '../../cli/contract/plan-runner.ts';
import { AGENT_LIMIT } from '../shared/agent-limit.ts';

const ANEW =
  'run `refit retry` with the name of the Machine: the next call of Cluster API starts the update again';

export const advice: PlanRunner = {
  name: '`refit capi-extension`',
  subject: undefined,
  limit: AGENT_LIMIT,
  startOver: () => ANEW,
  again: () => ANEW,
  corrected: undefined,
  retry: { causes: 'see the log of the agent on the node, and the version of the Machine' },
  goBack: () =>
    'run refit rollback machine/NAME -n NAMESPACE with the kubeconfig of the management cluster',
  backUp: undefined,
  runsHere: false,
};
