/** Owns counting the processes of the service that come and go while a restarted one is waited for or watched. */
import type { HostFacts, ProcessId } from './host.ts';
import { isSameProcess } from './host.ts';
import type { Journal } from './journal.ts';

export class ExitCount {
  #last: ProcessId | undefined;
  #exits = 0;

  /** The facts with the number of ends so far; the process that the restart itself ended is none of them. */
  see(host: HostFacts, journal: Journal): HostFacts {
    if (journal.phase !== 'restarted' && journal.phase !== 'soaking') {
      this.#last = undefined;
      this.#exits = 0;
      return host;
    }
    const { service } = host;
    const { process, work } = journal;
    if (isSameProcess(service, process) || isSameProcess(service, work.original)) return host;
    if (this.#last !== undefined && !isSameProcess(service, this.#last)) this.#exits++;
    this.#last = service;
    return this.#exits === 0 ? host : { ...host, exits: this.#exits };
  }
}
