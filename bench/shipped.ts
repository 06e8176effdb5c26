/** Describes how systemd units and the DaemonSet start the built command. */
import type { Refit } from '../sandbox/cluster/cluster.ts';
import { AGENT_FLAGS } from '../src/install/host/program.ts';
import { AGENT_ENVIRONMENT } from '../tools/deploy/agent-environment.ts';

export function asShipped(command: string): Refit {
  return {
    agent: [...AGENT_FLAGS, command],
    controller: [command],
    agentEnvironment: AGENT_ENVIRONMENT,
  };
}
