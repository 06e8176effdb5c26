/** The steps of a node for an airgapupdate. Two controllers start on the same event, so one of them gets a conflict. */
import { mkdir } from 'node:fs/promises';
import { nodes } from '../../../../src/kube/resources.ts';
import { messageOf } from '../../../../src/util/errors.ts';
import type { Controller } from '../runtime/manager.ts';
import type { AgentParts } from './parts.ts';
import { downloadPayload } from './payload.ts';
import { controllerOf, ON_CHANGE, withStatus, writeSignal } from './phase.ts';

/** Returns the controllers for bundles. Bundles are only for workers, so their signals are always on Nodes. */
export function airgapControllers(parts: AgentParts): Controller[] {
  const { client, clock, cache, machine, log } = parts;
  const owns = (name: string): boolean => name === parts.name;
  const common = { resource: nodes, kind: 'airgapupdate', triggers: ON_CHANGE, owns } as const;
  const signal = controllerOf(
    {
      ...common,
      name: 'airgap signal',
      act: async (object, signal) => {
        if (signal.status !== undefined) return;
        await writeSignal(client, nodes, object, withStatus(signal, 'Downloading', clock));
      },
    },
    cache,
  );
  const downloading = controllerOf(
    {
      ...common,
      name: 'airgap downloading',
      status: 'Downloading',
      act: async (object, signal) => {
        await mkdir(machine.imagesDirectory, { recursive: true });
        const request = {
          directory: machine.imagesDirectory,
          userAgent: machine.userAgent,
          stallMs: parts.times.stall,
        };
        const status = await downloadPayload({
          ...request,
          command: signal.command,
          abort: parts.abort,
        }).then(
          () => 'Completed' as const,
          (error: unknown) => {
            log.warn('download failed', { problem: messageOf(error) });
            return 'FailedDownload' as const;
          },
        );
        await writeSignal(client, nodes, object, withStatus(signal, status, clock));
      },
    },
    cache,
  );
  // The event that triggers the download is a signal without a status, although the step itself has another status. For
  // this reason an interrupted download never continues.
  return [signal, { ...downloading, admits: signal.admits }];
}
