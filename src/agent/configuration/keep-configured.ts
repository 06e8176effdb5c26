/**
 * Applies the changes of the configuration that the Node requests (everything except versions), if this host's own
 * options allow them. Then it reports the result on the Node.
 */

import { nodes } from '../../kube/resources.ts';
import { decodeSignal } from '../../signal/annotations.ts';
import { isFinal } from '../../signal/names.ts';
import * as wire from '../../signal/node-configuration.ts';
import { messageOf } from '../../util/errors.ts';
import { type HostParts, ROOT } from '../host-parts.ts';
import { keepDoing, type SignalObject } from '../object/signal-object.ts';
import { createCommands } from '../service/commands.ts';
import { changeHost, putBack } from './change-host.ts';
import { restartKubelet } from './kubelet.ts';

/** Works on the Node `name` until `stop` aborts. It never rejects: a failure is logged and tried again. */
export async function keepConfigured(
  parts: HostParts,
  name: string,
  object: SignalObject,
  stop: AbortSignal,
) {
  const { client, options, paths, log, clock } = parts;
  const commands = createCommands(process.env, clock);
  const host = {
    root: ROOT,
    journal: paths.configurationJournal,
    // The kubelet parses its arguments before it prints its help and ends.
    checkKubelet: async (args: readonly string[]) =>
      void (await commands.ask('kubelet', ...args, '--help')),
    restartKubelet: async () => await restartKubelet(parts, commands, name, stop),
  };
  /**
   * The result is kept until it is reported, so that a failed report does not repeat the change with all its restarts.
   */
  let outcome: { readonly uid: string; readonly failure?: string | undefined } | undefined;
  const carryOut = async (items: readonly unknown[]): Promise<void> => {
    const allowed = items
      .filter(wire.isConfigurable)
      .filter((item) => wire.allows(options.configurable, item.name));
    const wrong = items.find((item, index) => item !== allowed[index]);
    if (wrong)
      throw new Error(`--node-configuration does not allow ${JSON.stringify(wrong).slice(0, 200)}`);
    await changeHost(host, allowed, stop);
  };
  const work = async (): Promise<undefined> => {
    if (await putBack(host))
      log.warn('a change of the configuration was interrupted; everything was restored');
    const { newest } = object;
    const request = newest && wire.configurationRequestOn(newest);
    if (!request || wire.configurationReportOn(newest, request)) return;
    // The kubelet is not restarted during an upgrade. The Node changes when the upgrade ends, and then this runs again.
    const upgrade = decodeSignal(newest.metadata.annotations)?.status?.status;
    const isLive = upgrade !== undefined && !isFinal(upgrade);
    if (isLive && request.items.some((item) => wire.isConfigurable(item) && wire.isArgument(item)))
      return;
    if (outcome?.uid !== request.uid) {
      const failure = await carryOut(request.items).then(() => undefined, messageOf);
      stop.throwIfAborted();
      outcome = { uid: request.uid, failure: failure?.slice(0, 600) };
      if (failure === undefined) log.info('changed the configuration for Cluster API');
      else log.warn('cannot change the configuration for Cluster API', { reason: failure });
    }
    const patch = {
      metadata: {
        annotations: { [wire.CONFIGURATION_REPORT_ANNOTATION]: JSON.stringify(outcome) },
      },
    };
    await client.patch(nodes, name, patch, { type: 'merge', abort: stop });
  };
  const failed = (error: unknown, pauseMs: number): void =>
    log.warn('cannot finish a change of the configuration; trying again', {
      reason: messageOf(error),
      pauseMs,
    });
  await keepDoing(work, failed, { base: 1_000, cap: 60_000 }, { ...parts, object }, stop);
}
