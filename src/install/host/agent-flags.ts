/**
 * Node's options for an agent, which runs on every node for months and computes very little: no compilers, no start-up
 * snapshot, no threads for V8, garbage is collected when the agent comes to rest, and no signal opens a debugger.
 */
export const AGENT_FLAGS = [
  '--jitless',
  '--lite-mode',
  '--no-node-snapshot',
  '--v8-pool-size=0',
  '--expose-gc',
  '--disable-sigusr1',
] as const;
