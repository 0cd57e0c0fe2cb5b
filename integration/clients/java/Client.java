import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.LocalDate;
import java.util.Properties;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.postgresql.util.PSQLException;

/** Runs statements with pgjdbc; see ../README.md for the interface. */
public class Client {
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(String[] args) throws SQLException, IOException {
        String mode = args[0];
        String input = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
        String[] statements = input.split("\0");
        Properties properties = new Properties();
        properties.setProperty("user", System.getenv("PGUSER"));
        for (String[] setting : new String[][] {
            {"password", "PGPASSWORD"}, {"sslmode", "PGSSLMODE"}, {"sslrootcert", "PGSSLROOTCERT"}
        }) {
            if (System.getenv(setting[1]) != null) {
                properties.setProperty(setting[0], System.getenv(setting[1]));
            }
        }
        // "together" is pgjdbc's default mode: it cuts the text itself and sends all parts before one Sync.
        // Below zero pgjdbc sends what it can in binary from the first time on.
        properties.setProperty("prepareThreshold", mode.equals("bound-binary") ? "-1" : "5");
        properties.setProperty("preferQueryMode", mode.equals("simple") ? "simple" : "extended");
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/"
                + System.getenv("PGDATABASE");
        try (Connection connection = DriverManager.getConnection(url, properties)) {
            switch (mode) {
                case "simple":
                    for (String sql : statements) {
                        run(connection, sql);
                    }
                    break;
                case "extended":
                    for (String sql : statements) {
                        runPrepared(connection, sql);
                    }
                    break;
                case "bound":
                case "bound-binary":
                    for (String sql : statements) {
                        runBound(connection, sql);
                    }
                    break;
                case "together":
                    run(connection, String.join(";\n", statements));
                    break;
                default:
                    throw new IllegalArgumentException("pgjdbc has no mode " + mode);
            }
        }
        OUT.flush();
    }

    private static void run(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            show(statement, statement.execute(sql));
        } catch (PSQLException error) {
            show(error);
        }
    }

    private static void runPrepared(Connection connection, String sql) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            show(statement, statement.execute());
        } catch (PSQLException error) {
            show(error);
        }
    }

    private static void runBound(Connection connection, String sql) throws SQLException {
        String[] parts = sql.split("\u001f");
        try (PreparedStatement statement = connection.prepareStatement(parts[0].replaceAll("\\$[0-9]+", "?"))) {
            for (int i = 1; i < parts.length; i++) {
                String[] parameter = parts[i].split(" ", 2);
                switch (parameter[0]) {
                    case "date":
                        statement.setObject(i, LocalDate.parse(parameter[1]));
                        break;
                    case "integer":
                        statement.setInt(i, Integer.parseInt(parameter[1]));
                        break;
                    default:
                        statement.setString(i, parameter[1]);
                }
            }
            show(statement, statement.execute());
        } catch (PSQLException error) {
            show(error);
        }
    }

    private static void show(Statement statement, boolean isResultSet) throws SQLException {
        while (isResultSet || statement.getUpdateCount() != -1) {
            if (isResultSet) {
                show(statement.getResultSet());
            }
            isResultSet = statement.getMoreResults();
        }
    }

    private static void show(ResultSet rows) throws SQLException {
        ResultSetMetaData columns = rows.getMetaData();
        String[] fields = new String[columns.getColumnCount() + 1];
        fields[0] = "columns";
        for (int i = 1; i < fields.length; i++) {
            fields[i] = columns.getColumnLabel(i);
        }
        print(fields);
        while (rows.next()) {
            fields[0] = "row";
            for (int i = 1; i < fields.length; i++) {
                fields[i] = rows.getString(i);
            }
            print(fields);
        }
    }

    private static void show(PSQLException error) throws PSQLException {
        if (error.getServerErrorMessage() == null) {
            throw error;
        }
        print("error", error.getSQLState(), error.getServerErrorMessage().getMessage());
    }

    private static void print(String... fields) {
        OUT.print(Stream.of(fields).map(Client::escape).collect(Collectors.joining("\t")) + "\n");
    }

    private static String escape(String field) {
        if (field == null) {
            return "\\N";
        }
        return field.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r");
    }
}
