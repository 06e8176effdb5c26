/** Owns putting together the agent of one object. */
import * as files from 'node:fs/promises';
import { join } from 'node:path';
import type { Resource } from '../../kube/resources.ts';
import type { SignalCommand } from '../../signal/codec.ts';
import { Agent } from '../agent.ts';
import { perform } from '../effects.ts';
import type { LeaseMark } from '../maintenance/lease-mark.ts';
import { NodeDuties } from '../maintenance/node-duties.ts';
import { OwnObject } from '../object/own-object.ts';
import type { SignalObject } from '../object/signal-object.ts';
import { observeHost, searchService } from '../service/observe-host.ts';
import { ageOf } from '../service/processes.ts';
import { loadJournal, saveJournal } from '../state/journal-file.ts';
import type { HostParts } from './host-parts.ts';

export interface ObjectAgentOptions {
  readonly object: SignalObject;
  /** Path of its journal: no two agents share one. */
  readonly journal: string;
  readonly accepts: readonly SignalCommand['kind'][];
  /** Name of the host's Node; undefined where no pods run on the host. Throws while that is not known. */
  readonly nodeName: () => string | undefined;
  /** On the lease of that Node. */
  readonly mark: LeaseMark;
}

export function createOwnObject(host: HostParts, resource: Resource, name: string): OwnObject {
  const { client, clock, random, log } = host;
  return new OwnObject({ client, resource, name, clock, random, log });
}

export function createObjectAgent(
  host: HostParts,
  { object, journal, accepts, nodeName, mark }: ObjectAgentOptions,
): Agent {
  const { client, options, places, restarter, userAgent, clock, random, log } = host;
  const { stateDirectory, limits, times } = options;
  const duties = new NodeDuties({ client, nodeName, mark, clock, random, log });
  const effects = {
    stateDirectory,
    // Asked anew each time: the service may be restarted with another data directory.
    get imagesDirectory() {
      return join(places.current.dataDirectory, 'images');
    },
    userAgent,
    limits,
    environment: process.env,
    duties,
    restarter,
    files,
    clock,
    random,
    log,
  };
  return new Agent({
    object,
    loadJournal: async () => await loadJournal(journal),
    saveJournal: async (next) => await saveJournal(journal, next),
    observe: async (current) => await observeHost({ places, binary: host.binary }, current),
    searchService,
    ageOf,
    perform: async (step, current, abort) => await perform(step, current, effects, abort),
    duties,
    times,
    accepts,
    clock,
    random,
    log,
  });
}
