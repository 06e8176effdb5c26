/** The table of scenes with Machines of Cluster API, on a real API server. */
import { MACHINES } from '../dialects/clusters/machines.ts';
import { playTableOnRealServer } from './scenes/play-table.ts';

playTableOnRealServer(MACHINES);
