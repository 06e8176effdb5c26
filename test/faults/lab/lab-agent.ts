/** The agent of one host of the lab. It is the real agent, which the lab kills and restarts. */
import { Agent } from '../../../src/agent/agent.ts';
import { type ActiveJournal, IDLE, type Journal } from '../../../src/agent/journal.ts';
import { keepDelegated, leaseDelegation } from '../../../src/agent/maintenance/lease-delegation.ts';
import {
  type Maintenance,
  nodeMaintenance,
} from '../../../src/agent/maintenance/node-maintenance.ts';
import { ownObject } from '../../../src/agent/object/own-object.ts';
import { keepRegistered } from '../../../src/agent/registration/keep-registered.ts';
import type { Step, StepOutcome } from '../../../src/agent/steps/step.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { nodes } from '../../../src/kube/resources.ts';
import { controlNodes } from '../../../src/signal/names.ts';
import type { Clock } from '../../../src/util/clock.ts';
import { messageOf } from '../../../src/util/errors.ts';
import { silentLogger } from '../../../src/util/log.ts';
import type { LabHost } from './lab-host.ts';

export interface LabAgentParts {
  readonly host: LabHost;
  readonly role: 'controller' | 'worker';
  /** The address at which others reach the API server of a controller. */
  readonly address: string;
  readonly random: () => number;
}

const TIMES = { restartTimeoutMs: 10_000, soakMs: 1_000, readyTimeoutMs: 10_000 };

export class LabAgent {
  readonly #parts: LabAgentParts;
  /** The journal as it is on the disk. */
  #journal = JSON.stringify(IDLE);

  constructor(parts: LabAgentParts) {
    this.#parts = parts;
  }

  get isIdle(): boolean {
    return this.#read().phase === 'idle';
  }

  /** Runs the agent until `stop` aborts. Calls that the agent makes afterwards have no effect. */
  start(client: KubeClient, stop: AbortSignal, clock: Clock): void {
    const { host, role, random } = this.#parts;
    const tools = { clock, random, log: silentLogger };
    const { name } = host;
    const object = ownObject({
      ...tools,
      client,
      name,
      resource: role === 'worker' ? nodes : controlNodes,
    });
    const delegation = leaseDelegation(client);
    const maintenance = nodeMaintenance({
      ...tools,
      client,
      delegation,
      nodeName: () => (role === 'worker' ? name : undefined),
    });
    const agent = new Agent({
      ...tools,
      object,
      maintenance,
      loadJournal: async () => await Promise.resolve(this.#read()),
      saveJournal: async (journal) => {
        await Promise.resolve();
        if (!stop.aborted) this.#journal = JSON.stringify(journal);
      },
      observe: async (journal) => await Promise.resolve(host.observe(journal)),
      searchService: () => undefined,
      ageOf: async () => await Promise.resolve(host.ageMs),
      perform: async (step, journal, abort) =>
        await this.#perform(maintenance, step, journal, abort, stop),
      times: TIMES,
      accepts: ['k0supdate', 'airgapupdate'],
    });
    void agent.run(stop);
    if (role === 'worker') void keepDelegated({ ...tools, node: object, delegation }, stop);
    else
      void keepRegistered(
        { ...tools, object, describe: async () => await Promise.resolve(this.#describe()) },
        stop,
      );
  }

  async #perform(
    maintenance: Maintenance,
    step: Step,
    journal: ActiveJournal,
    abort: AbortSignal,
    stop: AbortSignal,
  ): Promise<StepOutcome> {
    try {
      const { signal: of, policy } = journal.work;
      const { planId, created } = of;
      if (step.kind === 'cordon-and-drain')
        await maintenance.cordonAndDrain(`${planId}/${created}`, policy?.drain ?? {}, abort);
      if (step.kind === 'uncordon') await maintenance.uncordon('ours', abort);
    } catch (error) {
      abort.throwIfAborted();
      return { ok: false, reason: messageOf(error) };
    }
    // A dead agent must change nothing on its host.
    stop.throwIfAborted();
    return this.#parts.host.perform(step, journal);
  }

  #describe() {
    const { host, address } = this.#parts;
    const { name, state } = host;
    const version = state.service?.life === 'up' ? { version: state.service.file } : {};
    return {
      name,
      nodeName: name,
      mode: 'controller',
      os: 'linux',
      arch: 'amd64',
      address,
      ...version,
    } as const;
  }

  #read(): Journal {
    return JSON.parse(this.#journal) as Journal;
  }
}
