/** Implements `refit notify test`, which sends a test message to a receiver of an UpgradePolicy. */
import { randomUUID } from 'node:crypto';
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import { homeOf } from '../../composition/own-namespaces.ts';
import { readPolicy } from '../../engine/policy/read-policy.ts';
import { type ClusterFlags, loadChosenCluster } from '../../kube/config/kubeconfig.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { deliverer } from '../../notify/deliver.ts';
import type { Receiver } from '../../notify/receivers.ts';
import { rfc3339 } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import { printable } from '../../util/printable.ts';
import type { CommandParts } from '../contract/object-commands.ts';
import { loadPolicies } from '../status/load.ts';
import { askUserName } from '../user-name.ts';

interface NamedReceiver {
  readonly policy: string;
  readonly receiver: Receiver;
}

/** The most names in a message about a receiver that does not exist. */
const MOST_NAMES = 12;

/**
 * Sends a test message to the receiver, which is named as `NAME` or `POLICY/NAME`. Rejects with REFIT_CONTROL if there is
 * no such receiver, if there are several, or if the receiver does not take the message.
 */
export async function testReceiver(
  named: string,
  flags: ClusterFlags,
  { clock, output, abort }: CommandParts,
): Promise<void> {
  const config = await loadChosenCluster(flags);
  using client = createClient(config, { userAgent: 'refit-notify' });
  const policies = await loadPolicies({ client, abort });
  if (policies.unseen !== undefined) throw new RefitError('REFIT_FORBIDDEN', policies.unseen);
  const { policy, receiver } = chosenFrom(policies.list().flatMap(receiversOf), named);
  const title = `${receiver.name} of UpgradePolicy ${policy}`;
  const user = printable(await askUserName({ client, abort }));
  const at = rfc3339(clock.now());
  const note = {
    id: randomUUID(),
    event: 'Test',
    plan: '',
    message: `Test message of Refit: ${user} has run refit notify test for the receiver ${title}. Nothing has happened to a plan.`,
    at,
  } as const;
  const namespace = homeOf(config);
  const deliver = deliverer({
    client,
    namespace,
    clock,
    environment: process.env,
    sender: { cluster: config.context },
  });
  const problem = await deliver(receiver, { id: note.id, policy, notes: [note] }, abort);
  if (problem !== undefined)
    throw new RefitError(
      'REFIT_CONTROL',
      `the receiver ${title} did not take the message: ${typeof problem === 'string' ? problem : problem.partly}`,
      { hint: `correct the receiver in the policy, or its Secret in the namespace ${namespace}` },
    );
  output.write(
    `The receiver ${title} has taken a test message.\nIt was sent from this machine. The leader sends from its own network, and with its own rights.\n`,
  );
}

function receiversOf(policy: UpgradePolicy): NamedReceiver[] {
  const { notify = [] } = readPolicy(policy);
  return notify.map((receiver) => ({ policy: policy.metadata.name, receiver }));
}

function chosenFrom(all: readonly NamedReceiver[], named: string): NamedReceiver {
  const found = all.filter(
    ({ policy, receiver: { name } }) => name === named || `${policy}/${name}` === named,
  );
  const [first, ...others] = found;
  if (first !== undefined && others.length === 0) return first;
  const names = (first === undefined ? all : found).map(nameOf).toSorted();
  const shown = listed(names, MOST_NAMES);
  if (first !== undefined)
    throw new RefitError('REFIT_CONTROL', `several policies have a receiver ${named}: ${shown}`, {
      hint: `name one, such as refit notify test ${names[0]}`,
    });
  throw new RefitError(
    'REFIT_CONTROL',
    names.length === 0
      ? 'no UpgradePolicy that can be read has a receiver (spec.notify)'
      : `no UpgradePolicy has a receiver ${named}; there are ${shown}`,
  );
}

function nameOf({ policy, receiver }: NamedReceiver): string {
  return `${policy}/${receiver.name}`;
}
